import { readFile } from 'node:fs/promises'
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'

import { Client } from 'pg'
import { sql } from 'kysely'
import { describe, expect, it, onTestFinished } from 'vitest'

import { searchOf } from '../../src/cli/learner-id.ts'
import { type Journal, openInspector, openJournal } from '../../src/journal/index.ts'
import { encodeStoredReply } from '../../src/writes/relayed-reply.ts'
import { eachDatabase } from '../support/each-database.ts'
import { batchOf, beginNew, confirmed } from './batches.ts'
import { makeFolder, openSqlite } from './open-sqlite.ts'

const databases = eachDatabase()
const [[, sqlite], [, postgres]] = databases

const LEARNER = '0f3ac2c1-04d6-4a8b-9c3e-5f1e7a9d2c41'
const key = { id: 'k1', key: Buffer.alloc(32, 5) }
const search = searchOf(LEARNER)

const requestOf = (text: string): Buffer => Buffer.from(`{"Learner":"${text}"}`)
const DUE_MS = Date.now() + 600_000

/**
 * Stores six batches. 1 and 3 are settled and name the learner, 4 waits for a retry and 5 is open, and both name the learner too. 2 (settled)
 * and 6 (open) name other learners.
 */
async function fill(journal: Journal): Promise<void> {
  const begin = (name: string, text: string, credentials?: string) =>
    beginNew(journal, batchOf([text], { name, payload: requestOf(text), credentials }))
  await begin('one', LEARNER, 'bearer of one')
  await journal.settle(1, [confirmed(0, `201 ${LEARNER}`)])
  await begin('two', 'another')
  await journal.settle(2, [confirmed(0, '201 another')])
  await begin('three', `${LEARNER.replaceAll('-', '').toUpperCase()}, another`)
  await journal.settle(3, [{ position: 0, state: 'refused', answer: `400 ${LEARNER}`, reason: 'ATT_VAL_2' }])
  await begin('four', `four ${LEARNER}`)
  await journal.settle(4, [{ position: 0, state: 'parked', answer: '200', retry: DUE_MS }])
  await begin('five', `five ${LEARNER}`)
  await begin('six', 'a third')
}

describe.each(databases)('erasing a learner from a journal in %s', (_name, { test }) => {
  for (const keys of [[], [key]])
    test(`erases only settled batches that name the learner, ${keys.length === 0 ? 'without' : 'with'} encryption, while the journal is in use`, async (url) => {
      const journal = await openJournal({ url, keys })
      onTestFinished(() => journal.close())
      await fill(journal)
      const before = await journal.balances()
      const inspector = await openInspector(url)
      onTestFinished(() => inspector.close())
      const how = { keys, plaintextAccepted: true }

      expect(await inspector.erase(how, search)).toEqual({
        erased: [1, 3],
        unsettled: [4, 5],
        unreadable: [],
        rewritten: true,
      })
      expect(await journal.load(1)).toMatchObject({ payload: undefined, credentials: undefined })
      expect((await journal.load(3))?.records).toMatchObject([{ state: 'refused', answer: undefined }])
      for (const kept of [2, 4, 5, 6]) expect((await journal.load(kept))?.payload).toBeDefined()
      // A resend is still recognised, so that nothing is posted twice.
      expect(await journal.begin(batchOf([LEARNER], { name: 'one' }))).toMatchObject({
        kind: 'known',
        batch: 1,
      })
      expect(await journal.balances()).toEqual(before)
      expect((await inspector.balances()).every(({ holds }) => holds)).toBe(true)
      await journal.settle(5, [confirmed(0, '201')])
      expect(await inspector.erase(how, search)).toMatchObject({ erased: [5], unsettled: [4] })
      expect(await beginNew(journal, batchOf(['more'], { name: 'seven' }))).toBeGreaterThan(6)
    })
})

describe('an SQLite journal after an erasure', () => {
  async function openFilled() {
    const file = `${await makeFolder()}/journal.db`
    const { journal, store } = await openSqlite(file)
    const fillers = Array.from({ length: 60 }, (_, n) => (n % 3 === 0 ? LEARNER : `filler ${n}`))
    for (const [n, text] of fillers.entries()) {
      const payload = Buffer.concat([requestOf(text), Buffer.alloc((n * 97) % 3_000, 'x')])
      const batch = await beginNew(journal, batchOf([`${text} event`], { payload }))
      await journal.settle(batch, [confirmed(0, `201 ${text}`)])
    }
    const inspector = await openInspector(`sqlite:${file}`)
    onTestFinished(() => inspector.close())
    const traces = async (): Promise<number> => {
      const parts = ['', '-wal', '-shm', '.mark'].map((end) => readFile(`${file}${end}`, 'latin1'))
      return (await Promise.all(parts)).join('').split(LEARNER).length - 1
    }
    return { journal, store, inspector, traces }
  }

  it('has no trace of the learner in its files, and still works', async () => {
    const { journal, inspector, traces } = await openFilled()
    expect(await traces()).toBeGreaterThan(20)
    const { erased, rewritten } = await inspector.erase({ keys: [], plaintextAccepted: true }, search)
    expect({ erased: erased.length, rewritten }).toEqual({ erased: 20, rewritten: true })
    expect(await traces()).toBe(0)
    expect(await beginNew(journal, batchOf(['after']))).toBe(61)
    expect((await journal.load(2))?.payload).toBeDefined()
  })

  it('keeps the key hashes of only those batches that were not erased', async () => {
    const { inspector, store } = await openFilled()
    await inspector.erase({ keys: [], plaintextAccepted: true }, search)
    const { rows } = await sql<{ batch: number; key: string }>`
      select batch, key from journal_records order by batch, position`.execute(store.db)
    expect(rows.map(({ key: own }) => /^0+$/.test(own))).toEqual(rows.map(({ batch }) => batch % 3 === 1))
  })
})

describe('the erasure of a batch that V2 served', () => {
  const none = new Uint8Array(0)
  const replyOf = (text: string, encoding?: string, encode = (body: Buffer) => body): string =>
    encodeStoredReply({
      status: 200,
      reason: 'OK',
      fields: ['Content-Type', 'a/b', ...(encoding === undefined ? [] : ['Content-Encoding', encoding])],
      body: encode(Buffer.from(`{"Learner":"${text}","Comment":"é"}`)),
    })
  const replies: readonly (readonly [reply: string | undefined, isErased: boolean])[] = [
    [replyOf(LEARNER), true],
    [replyOf(LEARNER.toUpperCase(), 'GZIP', gzipSync), true],
    [replyOf(LEARNER, 'deflate', deflateSync), true],
    [replyOf(LEARNER, 'br', brotliCompressSync), true],
    [replyOf('another'), false],
    [replyOf('another', 'gzip', gzipSync), false],
    // A reply that cannot be searched is deleted, because it may name any learner.
    [replyOf('another', 'gzip'), true],
    [replyOf('another', 'unheard-of'), true],
    [replyOf('another', undefined, gzipSync), true],
    ['no kept reply', true],
    [undefined, false],
  ]

  async function openServed(url: string, keys: readonly (typeof key)[]) {
    const journal = await openJournal({ url, keys })
    onTestFinished(() => journal.close())
    for (const [n, [answer]] of replies.entries()) {
      const given = { name: `${n}`, side: 'v2', payload: none } as const
      const batch = await beginNew(journal, batchOf([`${LEARNER} ${n}`], given))
      await journal.settle(batch, [{ position: 0, state: 'confirmed', answer }])
    }
    await beginNew(journal, batchOf(['open'], { name: 'open', side: 'v2', payload: none }))
    const inspector = await openInspector(url)
    onTestFinished(() => inspector.close())
    return { journal, inspector }
  }
  const named = replies.flatMap(([, isErased], n) => (isErased ? [n + 1] : []))

  describe.each([
    ['SQLite without encryption', [], sqlite],
    ['SQLite with encryption', [key], sqlite],
    ['PostgreSQL with encryption', [key], postgres],
  ] as const)('in %s', (_name, keys, { test }) => {
    test('deletes the stored reply of V2 only if the reply names the learner or cannot be searched', async (url) => {
      const { journal, inspector } = await openServed(url, keys)
      const before = await journal.balances()
      expect(await inspector.erase({ keys, plaintextAccepted: true }, search)).toEqual({
        erased: named,
        unsettled: [],
        unreadable: [],
        rewritten: true,
      })
      for (const [n, [answer, isErased]] of replies.entries())
        expect((await journal.load(n + 1))?.records).toMatchObject([
          { state: 'confirmed', answer: isErased ? undefined : answer },
        ])
      expect(await journal.balances()).toEqual(before)
      expect((await inspector.balances()).every(({ holds }) => holds)).toBe(true)
      // The journal still recognises a resend as a batch of V2, so that the adapter refuses the resend.
      const again = batchOf([`${LEARNER} 0`], { name: '0', payload: requestOf('again') })
      expect(await journal.begin(again)).toMatchObject({ kind: 'known', batch: 1, side: 'v2' })
      await journal.settle(replies.length + 1, [confirmed(0, replyOf(LEARNER))])
      expect(await inspector.erase({ keys, plaintextAccepted: true }, search)).toMatchObject({
        erased: [replies.length + 1],
        unreadable: [],
      })
    })
  })

  it('leaves no trace of the learner in the SQLite files except the key hashes of unsettled batches', async () => {
    const file = `${await makeFolder()}/journal.db`
    const { inspector } = await openServed(`sqlite:${file}`, [])
    const bytes = async () => {
      const parts = ['', '-wal', '-shm', '.mark'].map((end) => readFile(`${file}${end}`, 'latin1'))
      return (await Promise.all(parts)).join('')
    }
    const gzipped = gzipSync(`{"Learner":"${LEARNER.toUpperCase()}","Comment":"é"}`).toString('latin1')
    // The journal stores the reply as text in UTF-8, in which each byte from 0x80 on becomes two bytes.
    const traces = [LEARNER, Buffer.from(gzipped).toString('latin1')]
    const full = await bytes()
    expect(traces.map((trace) => full.includes(trace))).toEqual([true, true])
    await inspector.erase({ keys: [], plaintextAccepted: true }, search)
    const left = await bytes()
    expect(traces.map((trace) => left.includes(trace))).toEqual([false, false])
    const { store } = await openSqlite(file)
    const { rows } = await sql<{ batch: number; key: string }>`
      select batch, key from journal_records order by batch, position`.execute(store.db)
    expect(rows.filter(({ key: own }) => !/^0+$/.test(own)).map(({ batch }) => batch)).toEqual([
      replies.length + 1,
    ])
  })

  postgres.test('rewrites the PostgreSQL tables, so that no old version of a row is left', async (url) => {
    const { inspector } = await openServed(url, [key])
    const client = new Client({ connectionString: url })
    await client.connect()
    onTestFinished(() => client.end())
    const tables = ['journal_payloads', 'journal_answers', 'journal_credentials', 'journal_records']
    const filesOf = async (): Promise<readonly unknown[]> => {
      const { rows } = await client.query<{ file: unknown }>(
        'select pg_relation_filenode(name::regclass) as file from unnest($1::text[]) as name',
        [tables],
      )
      return rows.map(({ file }) => file)
    }
    const before = await filesOf()
    await inspector.erase({ keys: [key], plaintextAccepted: true }, search)
    const after = await filesOf()
    // The vacuum moved each table to a new file.
    expect(after.map((file, n) => file === before[n])).toEqual(tables.map(() => false))
  })
})

it('the erasure of a learner lists batches that cannot be decrypted, and fails if the journal has no key for them', async () => {
  const file = `${await makeFolder()}/journal.db`
  const journal = await openJournal({ url: `sqlite:${file}`, keys: [key] })
  onTestFinished(() => journal.close())
  await fill(journal)
  const inspector = await openInspector(`sqlite:${file}`)
  onTestFinished(() => inspector.close())
  const other = { id: 'k1', key: Buffer.alloc(32, 6) }
  expect(await inspector.erase({ keys: [other], plaintextAccepted: true }, search)).toMatchObject({
    erased: [],
    unreadable: [1, 2, 3, 4, 5, 6],
  })
  await expect(inspector.erase({ keys: [], plaintextAccepted: true }, search)).rejects.toMatchObject({
    code: 'ADP_CONFIGURATION',
    message: expect.stringContaining('k1') as unknown,
  })
})
