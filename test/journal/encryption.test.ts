import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'

import { expect, it } from 'vitest'

import { seal, sealAside, unseal } from '../../src/journal/store/seal.ts'
import { batchOf, beginNew } from './batches.ts'
import { makeFolder, openSqlite } from './open-sqlite.ts'

const key = { id: 'k1', key: Buffer.alloc(32, 3) }
const of = { batch: 7, owner: 'one' }
const withKey = { keys: [key], plaintextAccepted: false }
const withoutKey = { keys: [], plaintextAccepted: false }

/** Everything that is on the disk of a journal that is open. */
async function bytesOf(file: string): Promise<string> {
  const files = await Promise.all(['', '-wal'].map((ending) => readFile(`${file}${ending}`, 'latin1')))
  return files.join('')
}

it.each([
  { keys: [key], found: [] },
  { keys: [], found: ['MARK-PAYLOAD', 'MARK-REFUSED', 'MARK-ANSWER'] },
])('with %j no value of a record is on the disk, but for $found', async ({ keys, found }) => {
  const file = `${await makeFolder()}/journal.db`
  const { journal } = await openSqlite(file, { keys })
  const batch = await beginNew(
    journal,
    batchOf([], {
      payload: Buffer.from('MARK-PAYLOAD'.repeat(300)),
      credentials: 'bearer MARK-CREDENTIALS',
      records: [{ key: 'MARK-KEY' }, { key: 'MARK-KEY', refused: { answer: 'MARK-REFUSED' } }],
    }),
  )
  await journal.settle(batch, [{ position: 0, state: 'unknown', answer: 'MARK-ANSWER', retry: 'resend' }])
  const disk = await bytesOf(file)
  const marks = ['MARK-PAYLOAD', 'MARK-KEY', 'MARK-CREDENTIALS', 'MARK-REFUSED', 'MARK-ANSWER']
  expect(marks.filter((mark) => disk.includes(mark)).sort()).toEqual([...found].sort())
  expect(disk).not.toContain(key.key.toString('latin1'))
})

it.each([{ key: undefined }, { key }])(
  'compresses what is large, encrypted or not ($key.id)',
  async (given) => {
    const large = Buffer.from('{"mark":"one of many"}'.repeat(1_000))
    const sealed = seal(large, given.key, 'payload', of)
    expect(sealed.body.length).toBeLessThan(large.length / 10)
    const how = given.key === undefined ? withoutKey : withKey
    expect(Buffer.from(await unseal(sealed, how, 'payload', of))).toEqual(large)
  },
)

const damaged = expect.objectContaining({ code: 'ADP_JOURNAL_DAMAGED' }) as Error

it('reads what an older version kept as it came, and refuses every change of what it keeps itself', async () => {
  const large = Buffer.from('{"mark":"one of many"}'.repeat(1_000))
  expect(await unseal({ keyId: null, body: large }, withoutKey, 'payload', of)).toBe(large)
  const { keyId, body } = seal(large, undefined, 'payload', of)
  const attempts = [
    () => unseal({ keyId, body: body.subarray(0, 20) }, withoutKey, 'payload', of),
    () => unseal({ keyId, body: body.subarray(0, 2) }, withoutKey, 'payload', of),
    () => unseal({ keyId, body }, withoutKey, 'answers', of),
    () => unseal({ keyId, body }, withoutKey, 'payload', { ...of, owner: 'two' }),
    ...Array.from({ length: body.length }, (_, at) => () => {
      const flipped = Buffer.from(body)
      flipped[at] = (flipped[at] ?? 0) ^ (1 << (at % 8))
      return unseal({ keyId, body: flipped }, withoutKey, 'payload', of)
    }),
  ]
  for (const attempt of attempts) await expect(attempt()).rejects.toThrow(damaged)
})

it('reads no plaintext once there are keys, unless that was said', async () => {
  const { keyId, body } = seal(Buffer.from('forged'), undefined, 'answers', of)
  for (const id of [keyId, null]) {
    await expect(unseal({ keyId: id, body }, withKey, 'answers', of)).rejects.toThrow(damaged)
  }
  const accepting = { ...withKey, plaintextAccepted: true }
  expect(Buffer.from(await unseal({ keyId, body }, accepting, 'answers', of)).toString()).toBe('forged')
})

it('binds what is encrypted to its batch, its owner and its kind', async () => {
  const plain = Buffer.from('text')
  const sealed = seal(plain, key, 'payload', of)
  expect(Buffer.from(await unseal(sealed, withKey, 'payload', of)).toString()).toBe('text')
  const changed = Buffer.from(sealed.body)
  changed[changed.length - 1] = (changed.at(-1) ?? 0) ^ 1
  for (const attempt of [
    () => unseal(sealed, withKey, 'payload', { ...of, batch: 8 }),
    () => unseal(sealed, withKey, 'payload', { ...of, owner: 'two' }),
    () => unseal(sealed, withKey, 'answers', of),
    () => unseal({ ...sealed, body: changed }, withKey, 'payload', of),
    () => unseal({ ...sealed, body: changed.subarray(0, 5) }, withKey, 'payload', of),
  ])
    await expect(attempt()).rejects.toThrow(damaged)
  await expect(unseal(sealed, withoutKey, 'payload', of)).rejects.toThrow(
    expect.objectContaining({ code: 'ADP_CONFIGURATION' }),
  )
  expect(seal(plain, key, 'payload', of).body).not.toEqual(sealed.body)
})

it.each([{ key: undefined }, { key }])(
  'reads what is large as it was written in parts ($key.id)',
  async (given) => {
    const how = given.key === undefined ? withoutKey : withKey
    for (const large of [randomBytes(9_000_000), Buffer.alloc(9_000_000, 'mark'), randomBytes(100_000)]) {
      const sealed = await sealAside(large, given.key, 'payload', of)
      expect(sealed.keyId).toBe(seal(large, given.key, 'payload', of).keyId)
      expect(Buffer.compare(await unseal(sealed, how, 'payload', of), large)).toBe(0)
      const changed = Buffer.from(sealed.body)
      changed[changed.length - 1] = (changed.at(-1) ?? 0) ^ 1
      await expect(unseal({ ...sealed, body: changed }, how, 'payload', of)).rejects.toThrow(damaged)
    }
  },
)
