import { readFile } from 'node:fs/promises'

import { expect, it } from 'vitest'

import { seal, unseal } from '../../src/journal/store/seal.ts'
import { batchOf, beginNew } from './batches.ts'
import { makeFolder, openSqlite } from './open-sqlite.ts'

const key = { id: 'k1', key: Buffer.alloc(32, 3) }

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
  await journal.settle(batch, [{ position: 0, state: 'unknown', answer: 'MARK-ANSWER', again: 'resend' }])
  const disk = await bytesOf(file)
  const marks = ['MARK-PAYLOAD', 'MARK-KEY', 'MARK-CREDENTIALS', 'MARK-REFUSED', 'MARK-ANSWER']
  expect(marks.filter((mark) => disk.includes(mark)).sort()).toEqual([...found].sort())
  expect(disk).not.toContain(key.key.toString('latin1'))
})

it.each([{ key: undefined }, { key }])('compresses what is large, encrypted or not ($key.id)', (given) => {
  const large = Buffer.from('{"mark":"one of many"}'.repeat(1_000))
  const sealed = seal(large, given.key, 'payload', 7)
  expect(sealed.body.length).toBeLessThan(large.length / 10)
  expect(Buffer.from(unseal(sealed, [key], 'payload', 7))).toEqual(large)
})

it('reads what was kept as it came, and names what was damaged', () => {
  const large = Buffer.from('{"mark":"one of many"}'.repeat(1_000))
  expect(unseal({ keyId: null, body: large }, [], 'payload', 7)).toBe(large)
  const { body } = seal(large, undefined, 'payload', 7)
  expect(() => unseal({ keyId: null, body: body.subarray(0, 20) }, [], 'payload', 7)).toThrow(
    expect.objectContaining({ code: 'ADP_INTERNAL' }),
  )
})

it('binds what is encrypted to its batch and its kind', () => {
  const plain = Buffer.from('text')
  const sealed = seal(plain, key, 'payload', 7)
  expect(Buffer.from(unseal(sealed, [key], 'payload', 7)).toString()).toBe('text')
  const changed = Buffer.from(sealed.body)
  changed[changed.length - 1] = (changed.at(-1) ?? 0) ^ 1
  for (const attempt of [
    () => unseal(sealed, [key], 'payload', 8),
    () => unseal(sealed, [key], 'answers', 7),
    () => unseal({ ...sealed, body: changed }, [key], 'payload', 7),
    () => unseal({ ...sealed, body: changed.subarray(0, 5) }, [key], 'payload', 7),
    () => unseal(sealed, [], 'payload', 7),
  ])
    expect(attempt).toThrow(expect.objectContaining({ code: 'ADP_CONFIGURATION' }))
  expect(seal(plain, key, 'payload', 7).body).not.toEqual(sealed.body)
})
