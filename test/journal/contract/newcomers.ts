import { describe, expect } from 'vitest'

import { batchOf, beginNew, confirmed, statesOf } from '../batches.ts'
import type { Subject } from './subject.ts'

const MIB = 1024 ** 2

/** Tests how a journal stores the batches of newcomers, which are clients whose credentials V3 has not accepted yet. */
export function describeNewcomers({ name, test }: Subject): void {
  const [one, two] = [batchOf(['a'], { name: 'ids' }), batchOf(['b'], { name: 'ids' })]
  const forged = { ...two, newcomer: true }
  const known = (batch: number): object => ({ kind: 'known', batch })

  describe(`a journal in ${name} (batches of newcomers, whose credentials V3 has not accepted yet)`, () => {
    test('still recognises an answered batch until V3 accepts the credentials of a newer batch with the same ids', async (journal, opener) => {
      const first = await beginNew(journal, one)
      await journal.settle(first, [confirmed(0)])
      journal.answered(first)
      const second = await beginNew(journal, forged)
      expect(await journal.begin(one)).toMatchObject(known(first))
      await journal.settle(second, [{ position: 0, state: 'unknown', answer: undefined }])
      expect(await journal.begin(one)).toMatchObject(known(first))
      const third = await beginNew(journal, { ...batchOf(['c'], { name: 'ids' }), newcomer: true })
      // A second instance must also see that the first instance confirmed the batch.
      const other = await opener.open()
      expect(await other.begin(one)).toMatchObject(known(first))
      await journal.settle(third, [confirmed(0)])
      expect(await other.begin(one)).toMatchObject({ kind: 'new' })
    })

    test("still recognises a batch that was answered only after another owner's batch with the same ids had arrived", async (journal) => {
      const first = await beginNew(journal, one)
      const second = await beginNew(journal, forged)
      await journal.settle(first, [confirmed(0)])
      journal.answered(first)
      await journal.settle(second, [confirmed(0)])
      expect(await journal.begin(one)).toMatchObject(known(first))
    })

    test('still recognises an earlier batch when 120 batches of newcomers have the same ids', async (journal) => {
      const first = await beginNew(journal, one)
      for (let count = 0; count < 120; count += 1)
        await beginNew(journal, { ...batchOf([`x${count}`], { name: 'ids' }), newcomer: true })
      expect(await journal.begin(one)).toMatchObject(known(first))
    })

    test('deletes a batch whose credentials V3 rejects, but keeps its count in the totals', async (journal, opener) => {
      const refused = { answer: 'no', reason: 'ADP_FIELD' }
      const denied = { ...forged, records: [{ key: 'a' }, { key: 'b' }, { key: 'c', refused }] }
      const begun = await journal.begin(denied)
      const { batch, lease } = begun as { batch: number; lease: number }
      await expect(journal.forget(batch, 1, lease)).rejects.toMatchObject({ code: 'ADP_JOURNAL_LOST' })
      await journal.forget(batch, 2, lease)
      // Repeats the call, like a caller that did not get the result of the first call.
      await journal.forget(batch, 2, lease)
      expect(await journal.load(batch)).toBeUndefined()
      expect(await journal.begin(denied)).toMatchObject({ kind: 'new' })
      expect(await (await opener.inspect()).balances()).toMatchObject([
        { received: 6, open: 2, refused: 4, holds: true },
      ])
    })

    test('refuses to delete a batch if one of its records may have been applied', async (journal) => {
      const begun = await journal.begin({ ...batchOf(['a', 'b']), newcomer: true })
      const { batch, lease } = begun as { batch: number; lease: number }
      await journal.settle(batch, [confirmed(0)])
      await expect(journal.forget(batch, 1, lease)).rejects.toMatchObject({ code: 'ADP_JOURNAL_LOST' })
      expect(await statesOf(journal, batch)).toEqual(['confirmed', 'open'])
    })

    test('limits the stored bytes of all newcomers together, and the bytes of each other owner separately', async (_journal, opener) => {
      const kept = { ownerBytes: 4 * MIB, newcomerBytes: 2 * MIB }
      const large = (owner: string, newcomer: boolean, of: string) => ({
        ...batchOf([of], { name: of, owner, payload: Buffer.alloc(1.5 * MIB) }),
        newcomer,
      })
      const journal = await opener.open({ kept })
      const full = { code: 'ADP_OVERLOADED' }
      const first = await beginNew(journal, large('one', true, 'a'))
      await expect(journal.begin(large('two', true, 'b'))).rejects.toMatchObject(full)
      // A resend of a stored batch needs no more bytes.
      expect(await journal.begin(large('one', true, 'a'))).toMatchObject(known(first))
      await beginNew(journal, large('three', false, 'c'))
      await beginNew(journal, large('three', true, 'd'))
      await expect(journal.begin(large('three', false, 'e'))).rejects.toMatchObject(full)
      // The limit also holds after a restart.
      const next = await opener.open({ kept })
      await expect(next.begin(large('two', true, 'b'))).rejects.toMatchObject(full)
      await expect(next.begin(large('three', true, 'e'))).rejects.toMatchObject(full)
      await journal.settle(first, [confirmed(0)])
      await beginNew(journal, large('two', true, 'b'))
      await expect(journal.begin(large('four', true, 'f'))).rejects.toMatchObject(full)
    })
  })
}
