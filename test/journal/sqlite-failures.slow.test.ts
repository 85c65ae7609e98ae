import { randomBytes } from 'node:crypto'
import { mkdir, stat, writeFile } from 'node:fs/promises'
import { DatabaseSync } from 'node:sqlite'

import { sql } from 'kysely'
import { describe, expect, it, onTestFinished, vi } from 'vitest'

import { openJournal } from '../../src/journal/index.ts'
import { openJournalOn } from '../../src/journal/sql-journal.ts'
import { openStore } from '../../src/journal/open-store.ts'
import type { Store } from '../../src/journal/store.ts'
import { batchOf, beginNew, confirmed, statesOf } from './batches.ts'
import { createJournalClock, createJournalEvents, makeFolder, openSqlite } from './open-sqlite.ts'

const timeouts = { timeoutMs: 400, settleTimeoutMs: 5_000 }

describe('an SQLite journal', () => {
  it('leaves reopened records to recovery if the caller gave up before the commit that reopened them', async () => {
    const file = `${await makeFolder()}/journal.db`
    const store = openStore(`sqlite:${file}`, { timeoutMs: 400, wallMs: Date.now })
    let slow = Promise.resolve()
    const commit: Store['commit'] = async (group) => {
      await slow
      return store.commit(group)
    }
    const journal = await openJournalOn({ ...store, commit }, timeouts)
    onTestFinished(() => journal.close())
    const batch = await beginNew(journal, batchOf(['a', 'b']))
    const refused = { position: 0, state: 'notApplied', answer: undefined, retry: 'resend' } as const
    await journal.settle(batch, [refused, confirmed(1)])
    let goOn = (): void => undefined
    slow = new Promise((resolve) => (goOn = resolve))
    await expect(journal.reopen(batch, [0], undefined)).rejects.toMatchObject({ code: 'ADP_OUTCOME_UNKNOWN' })
    const abandoned = () => journal.findAbandoned(() => false)
    expect([await abandoned(), await abandoned()]).toEqual([[], []])
    goOn()
    await vi.waitFor(
      async () => expect(await statesOf(journal, batch)).toEqual(['open', 'confirmed']),
      60_000,
    )
    await abandoned()
    expect(await abandoned()).toMatchObject([{ batch, after: new Map([[0, []]]) }])
    expect(await journal.findAbandoned(() => true)).toEqual([])
  })

  it('reports an unknown outcome if the answer to the commit of a batch was lost', async () => {
    const file = `${await makeFolder()}/journal.db`
    const store = openStore(`sqlite:${file}`, { timeoutMs: 400, wallMs: Date.now })
    let isCommitted = false
    const commit: Store['commit'] = async (group) => {
      const committed = await store.commit(group)
      if (group.operations[0]?.kind !== 'begin') return committed
      isCommitted = true
      // Never resolves, as if the process had died after the commit.
      return new Promise(() => undefined)
    }
    const journal = await openJournalOn({ ...store, commit }, timeouts)
    await expect(journal.begin(batchOf(['a']))).rejects.toMatchObject({
      code: 'ADP_OUTCOME_UNKNOWN',
      status: 504,
    })
    expect(isCommitted).toBe(true)
    await store.close()
    const clock = createJournalClock()
    const { journal: next } = await openSqlite(file, { clock })
    await next.takeOver()
    await clock.pass(20_000)
    expect(await next.takeOver()).toMatchObject([{ after: new Map([[0, []]]) }])
  })

  it('never stores a batch after it has reported the batch as not stored', async () => {
    const file = `${await makeFolder()}/journal.db`
    const store = openStore(`sqlite:${file}`, { timeoutMs: 400, wallMs: Date.now })
    let goOn = (): void => undefined
    const slow = new Promise<void>((resolve) => (goOn = resolve))
    let ended: Promise<unknown> | undefined
    const commit: Store['commit'] = async (group) => {
      if (group.operations[0]?.kind !== 'begin') return new Promise(() => undefined)
      await slow
      ended = store.commit(group)
      await ended
      return new Promise(() => undefined)
    }
    const journal = await openJournalOn({ ...store, commit }, timeouts)
    await expect(journal.begin(batchOf(['a']))).rejects.toMatchObject({ code: 'ADP_JOURNAL_UNAVAILABLE' })
    goOn()
    await vi.waitFor(() => expect(ended).toBeDefined(), 60_000)
    await ended
    const { rows } = await sql`select id from journal_batches`.execute(store.db)
    await store.close()
    expect(rows).toEqual([])
  })

  it('syncs each commit to the disk, in a file that only its owner can read', async () => {
    const file = `${await makeFolder()}/new folder/journal.db`
    const { store } = await openSqlite(file)
    const pragma = async (name: string) =>
      (await sql.raw<Record<string, unknown>>(`PRAGMA ${name}`).execute(store.db)).rows
    expect(await pragma('journal_mode')).toEqual([{ journal_mode: 'wal' }])
    // The value 2 means FULL (sqlite.org/pragma.html). With 1 a commit does not sync a WAL.
    expect(await pragma('synchronous')).toEqual([{ synchronous: 2 }])
    expect((await stat(file)).mode & 0o777).toBe(0o600)
  })

  it('stores no batch while the disk is full, and settles records when the disk has room again', async () => {
    const { heard, events } = createJournalEvents()
    const { journal, store } = await openSqlite(`${await makeFolder()}/journal.db`, {
      ...timeouts,
      timeoutMs: 2_000,
      events,
    })
    const batch = await beginNew(journal, batchOf(['a']))
    const pages = async (limit: number) => {
      await sql.raw(`PRAGMA max_page_count = ${limit}`).execute(store.db)
    }
    await pages(1)
    const large = batchOf(['b'], { payload: randomBytes(4_000_000) })
    await expect(journal.begin(large)).rejects.toMatchObject({
      code: 'ADP_JOURNAL_UNAVAILABLE',
      status: 503,
      message: expect.stringContaining('the disk is full') as unknown,
    })
    expect(journal.isAvailable()).toBe(false)
    const settled = journal.settle(batch, [confirmed(0, randomBytes(2_000_000).toString('hex'))])
    await vi.waitFor(() => expect(heard).toHaveLength(1), 60_000)
    await pages(1_000_000)
    await settled
    expect(journal.isAvailable()).toBe(true)
    expect(heard).toEqual(['failed: the disk is full', 'recovered'])
    expect(await journal.balances()).toMatchObject([{ received: 1, confirmed: 1 }])
    expect(await journal.load(batch + 1)).toBeUndefined()
  })

  it.each([
    ['a missing column', 'alter table journal_batches rename column content to changed'],
    ['a missing table', 'drop table journal_payloads'],
  ])(
    'fails at once, without a retry, if the database has %s',
    async (_what, change) => {
      const file = `${await makeFolder()}/journal.db`
      const { journal } = await openSqlite(file, { timeoutMs: 20_000 })
      const other = new DatabaseSync(file)
      other.exec(change)
      other.close()
      await expect(journal.begin(batchOf(['a']))).rejects.toMatchObject({ code: 'ADP_INTERNAL', status: 500 })
    },
    10_000,
  )

  it('waits for the lock of another program until the timeout of the batch', async () => {
    const file = `${await makeFolder()}/journal.db`
    const { journal } = await openSqlite(file, timeouts)
    const other = new DatabaseSync(file)
    onTestFinished(() => other.close())
    other.exec('BEGIN IMMEDIATE')
    const startedMs = performance.now()
    await expect(journal.begin(batchOf(['a']))).rejects.toMatchObject({ code: 'ADP_JOURNAL_UNAVAILABLE' })
    expect(performance.now() - startedMs).toBeLessThan(8_000)
    other.exec('ROLLBACK')
    await journal.begin(batchOf(['b']))
    // The operation that timed out may still run once the lock is free, and is then rolled back.
    await vi.waitFor(
      async () => expect(await journal.balances()).toMatchObject([{ received: 1, open: 1 }]),
      10_000,
    )
  })

  it.each([
    [
      'is a folder',
      async (file: string) => {
        await mkdir(file)
      },
      'ADP_JOURNAL_UNAVAILABLE',
      /^The journal sqlite:.*journal\.db cannot be opened: the file cannot be opened\. Nothing was written\. Check its path/,
    ],
    [
      'is not a database',
      async (file: string) => {
        await writeFile(file, 'no database'.repeat(1_000))
      },
      'ADP_JOURNAL_DAMAGED',
      /^The journal sqlite:.*journal\.db is damaged or was replaced: the file is not a database\./,
    ],
  ])('refuses to open if the file %s', async (_what, make, code, text) => {
    const file = `${await makeFolder()}/journal.db`
    await make(file)
    await expect(openJournal({ url: `sqlite:${file}` })).rejects.toMatchObject({
      code,
      message: expect.stringMatching(text) as unknown,
    })
  })

  it.each(['redis://x', 'sqlite::memory:', ''])('refuses to open the URL %j', async (url) => {
    await expect(openJournal({ url })).rejects.toMatchObject({ code: 'ADP_CONFIGURATION' })
  })
})
