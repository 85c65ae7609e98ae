import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'

import { expect, it } from 'vitest'

import { seal, type Sealed, unseal, type Unsealing } from '../../src/journal/seal.ts'
import { batchOf, beginNew } from './batches.ts'
import { makeFolder, openSqlite } from './open-sqlite.ts'

const key = { id: 'k1', key: Buffer.alloc(32, 3) }
const of = { kind: 'payload', batch: 7, owner: 'one' } as const
const withKey = { keys: [key], plaintextAccepted: false }
const withoutKey = { keys: [], plaintextAccepted: false }

async function bytesOf(file: string): Promise<string> {
  const files = await Promise.all(['', '-wal'].map((ending) => readFile(`${file}${ending}`, 'latin1')))
  return files.join('')
}

it.each([
  { name: 'no value of a record if it has a key', keys: [key], found: [] },
  {
    name: 'only the request and the answers if it has no key',
    keys: [],
    found: ['MARK-PAYLOAD', 'MARK-REFUSED', 'MARK-ANSWER'],
  },
])('a journal writes to the disk $name', async ({ keys, found }) => {
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

const damaged = expect.objectContaining({ code: 'ADP_JOURNAL_DAMAGED' }) as Error
const textIn = async (sealed: Sealed, how: Unsealing): Promise<string> =>
  Buffer.from(await unseal(sealed, how, of)).toString()

const withAndWithoutKey = [
  { how: 'without a key', key: undefined },
  { how: 'with a key', key },
]

it.each(withAndWithoutKey)(
  'a journal $how compresses a large request, and reports a changed byte as damage',
  async (given) => {
    const large = Buffer.from('{"mark":"one of many"}'.repeat(1_000))
    const { keyId, body } = await seal(large, given.key, of)
    expect(body.length).toBeLessThan(large.length / 10)
    const how = given.key === undefined ? withoutKey : withKey
    expect(await textIn({ keyId, body }, how)).toBe(large.toString())
    const changed = Array.from({ length: body.length }, (_, at) => {
      const flipped = Buffer.from(body)
      flipped[at] = (flipped[at] ?? 0) ^ (1 << (at % 8))
      return flipped
    })
    // Without a key a changed bit may only disable the checksum of the compressed data, so the unchanged text is also accepted.
    const same = given.key === undefined ? [large.toString()] : []
    for (const other of [body.subarray(0, 20), body.subarray(0, 2), ...changed]) {
      const found = await textIn({ keyId, body: other }, how).catch((error: unknown) => error)
      expect([damaged, ...same]).toContainEqual(found)
    }
  },
)

it('a journal with keys refuses plaintext unless the configuration accepts it', async () => {
  const sealed = await seal(Buffer.from('forged'), undefined, of)
  await expect(unseal(sealed, withKey, of)).rejects.toThrow(damaged)
  expect(await textIn(sealed, { ...withKey, plaintextAccepted: true })).toBe('forged')
})

it('a journal refuses to decrypt a value that was moved to another batch, owner or kind of value', async () => {
  const sealed = await seal(Buffer.from('text'), key, of)
  expect(await textIn(sealed, withKey)).toBe('text')
  for (const other of [{ ...of, batch: 8 }, { ...of, owner: 'two' }, { ...of, kind: 'answers' } as const])
    await expect(unseal(sealed, withKey, other)).rejects.toThrow(damaged)
  await expect(unseal(sealed, withoutKey, of)).rejects.toThrow(
    expect.objectContaining({ code: 'ADP_CONFIGURATION' }),
  )
  expect((await seal(Buffer.from('text'), key, of)).body).not.toEqual(sealed.body)
})

it.each(withAndWithoutKey)('a journal $how stores and returns a request of 9 MB unchanged', async (given) => {
  const how = given.key === undefined ? withoutKey : withKey
  for (const large of [randomBytes(9_000_000), Buffer.alloc(9_000_000, 'mark'), Buffer.alloc(0)]) {
    const sealed = await seal(large, given.key, of)
    expect(Buffer.compare(await unseal(sealed, how, of), large)).toBe(0)
  }
})
