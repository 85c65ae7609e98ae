import { sql } from 'kysely'
import { describe, expect, it } from 'vitest'

import type { JournalOptions } from '../../../src/journal/index.ts'
import { batchOf, beginNew, confirmed, textOf } from '../batches.ts'
import type { Subject } from './subject.ts'

const key = { id: 'k1', key: Buffer.alloc(32, 7) }

export function describeSecrets({ name, withOpener, test }: Subject): void {
  describe(`a journal in ${name} (credentials)`, () => {
    it('with a key, stores the credentials of a batch until the outcome of the last record is final', () =>
      withOpener(async (opener) => {
        const journal = await opener.open({ keys: [key] })
        const batch = await beginNew(journal, batchOf(['a', 'b'], { credentials: 'bearer one' }))
        const credentials = async () => (await journal.load(batch))?.credentials
        expect(await credentials()).toBe('bearer one')
        await journal.settle(batch, [
          { position: 0, state: 'notApplied', answer: 'later', retry: 'resend' },
          confirmed(1),
        ])
        expect(await credentials()).toBe('bearer one')
        await journal.reopen(batch, [0], 'bearer two')
        expect(await credentials()).toBe('bearer two')
        await journal.settle(batch, [confirmed(0)])
        expect(await credentials()).toBeUndefined()
      }))

    test('without a key, stores no credentials', async (journal) => {
      const batch = await beginNew(journal, batchOf(['a'], { credentials: 'bearer one' }))
      expect((await journal.load(batch))?.credentials).toBeUndefined()
    })
  })

  describe(`a journal in ${name} (encryption)`, () => {
    it('refuses to open with a new encryption key until the configuration accepts the existing plaintext', () =>
      withOpener(async (opener) => {
        const before = await opener.open()
        const batch = await beginNew(before, batchOf(['a']))
        await before.close()
        await expect(opener.open({ keys: [key] })).rejects.toMatchObject({
          code: 'ADP_CONFIGURATION',
          message: expect.stringContaining('{ id: plaintext }') as unknown,
        })
        const accepting = await opener.open({ keys: [key], plaintext: 'accept' })
        expect(textOf(await accepting.load(batch))).toBe('payload of a')
        const sealed = await beginNew(accepting, batchOf(['b']))
        await accepting.close()
        const strict = await opener.open({ keys: [key] })
        expect(textOf(await strict.load(sealed))).toBe('payload of b')
        await expect(strict.load(batch)).rejects.toMatchObject({ code: 'ADP_JOURNAL_DAMAGED', status: 503 })
        expect(strict.isAvailable()).toBe(true)
      }))

    it('opens with its key after a database failover that lost the row of the key', () =>
      withOpener(async (opener) => {
        const before = await opener.open({ keys: [key] })
        await sql`delete from journal_keys`.execute(before.database.db)
        const batch = await beginNew(before, batchOf(['a']))
        await before.close()
        const after = await opener.open({ keys: [key] })
        expect(textOf(await after.load(batch))).toBe('payload of a')
        const known = await sql<{ id: string }>`select id from journal_keys`.execute(after.database.db)
        expect(known.rows).toEqual([{ id: 'k1' }])
      }))

    it('decrypts with every configured key, and encrypts with the first key', () =>
      withOpener(async (opener) => {
        const [first, second] = [key, { id: 'k2', key: Buffer.alloc(32, 9) }]
        const before = await opener.open({ keys: [first] })
        const old = await beginNew(before, batchOf(['a']))
        await before.settle(old, [confirmed(0, 'old answer')])
        await before.close()
        const rotated = await opener.open({ keys: [second, first] })
        const stored = await rotated.load(old)
        expect(textOf(stored)).toBe('payload of a')
        expect(stored?.records[0]?.answer).toBe('old answer')
        const fresh = await beginNew(rotated, batchOf(['b']))
        await rotated.close()
        const faults: (readonly [JournalOptions['keys'], string])[] = [
          [[second], 'key k1'],
          [[first], 'key k2'],
          [[], 'key k1'],
          [[{ id: 'k1', key: Buffer.alloc(32, 8) }, second], 'id k1'],
          [[{ id: 'k1', key: Buffer.alloc(31) }], '32 bytes'],
        ]
        for (const [keys = [], text] of faults) {
          await expect(opener.open({ keys })).rejects.toMatchObject({
            code: 'ADP_CONFIGURATION',
            message: expect.stringContaining(text) as unknown,
          })
        }
        const last = await opener.open({ keys: [second, first] })
        expect(textOf(await last.load(fresh))).toBe('payload of b')
      }))
  })
}
