import { describe, expect } from 'vitest'

import type { Journal, NewBatch } from '../../../src/journal/index.ts'
import { afterOf, batchOf, beginNew, confirmed, statesOf } from '../batches.ts'
import type { Subject } from './subject.ts'

const onV2 = (keys: readonly string[], name?: string, given: Partial<NewBatch> = {}): NewBatch =>
  batchOf(keys, { side: 'v2', ...(name === undefined ? {} : { name }), ...given })
const unknown = (position: number, retry?: number) =>
  ({ position, state: 'unknown', answer: undefined, reason: 'connectionLost', retry }) as const
const parked = (position: number) =>
  ({ position, state: 'parked', answer: undefined, reason: 'unavailable', retry: 5 }) as const

/** Builds the outcome of a record whose batch the client may resend. */
const ofLost = (state: 'unknown' | 'notApplied', position: number) =>
  ({ position, state, answer: undefined, reason: 'connectionLost', retry: 'resend' }) as const

/** Stores a batch for V3 whose only record ends with the outcome `end`. Resolves with the number of the batch. */
async function settledOnV3(
  journal: Journal,
  key: string,
  end: ReturnType<typeof unknown> | ReturnType<typeof parked>,
): Promise<number> {
  const batch = await beginNew(journal, batchOf([key]))
  await journal.settle(batch, [end])
  return batch
}

export function describeSides({ name, test }: Subject): void {
  describe(`a journal in ${name} (batches for V2 and V3)`, () => {
    test('treats each copy of a batch for V2 as new if the call has no resendOf', async (journal) => {
      const first = await beginNew(journal, onV2(['a'], 'one'))
      const second = await beginNew(journal, onV2(['a'], 'one'))
      expect(second).toBeGreaterThan(first)
      expect((await journal.load(second))?.side).toBe('v2')
    })

    test('recognises a resend to V2 only if a stored copy has a higher batch number than resendOf', async (journal) => {
      const resend = (resendOf: number): NewBatch => onV2(['a'], 'one', { resendOf })
      const [first, second] = await Promise.all([journal.begin(resend(0)), journal.begin(resend(0))])
      expect(first.kind).toBe('new')
      const known = { kind: 'known', running: true, side: 'v2' }
      expect(second).toEqual({ ...known, batch: first.batch })
      const third = await beginNew(journal, resend(first.batch))
      expect(await journal.begin(resend(first.batch))).toEqual({
        ...known,
        batch: third,
        earlier: [first.batch],
      })
      expect(await beginNew(journal, resend(third))).toBeGreaterThan(third)
      // A batch with other ids or other bytes is not a resend.
      await beginNew(journal, onV2(['a'], 'two', { resendOf: 0 }))
      await beginNew(journal, onV2(['b'], 'one', { resendOf: 0 }))
    })

    test('returns all copies of a batch for V2, newest first, when the client resends the batch to V3', async (journal) => {
      const first = await beginNew(journal, onV2(['a'], 'one'))
      const second = await beginNew(journal, onV2(['a'], 'one'))
      const batch = await beginNew(journal, onV2(['a'], 'one'))
      const again = batchOf(['a'], { name: 'one' })
      const known = { batch, side: 'v2', earlier: [second, first] }
      expect(await journal.begin(again)).toEqual({ kind: 'known', running: true, ...known })
      await journal.settle(batch, [confirmed(0)])
      expect(await journal.begin(again)).toEqual({ kind: 'known', running: false, ...known })
    })

    test('recognises a batch for V3 when the client resends the batch to V2', async (journal) => {
      const batch = await beginNew(journal, batchOf(['a'], { name: 'one' }))
      expect(await journal.begin(onV2(['a'], 'one'))).toEqual({ kind: 'known', batch, running: true })
    })

    test('lets only one of two simultaneous resends to V3 replace the copies of a batch for V2', async (journal) => {
      await beginNew(journal, onV2(['a'], 'one'))
      const lost = await beginNew(journal, onV2(['a'], 'one'))
      await journal.settle(lost, [unknown(0)])
      const replacing = batchOf(['a'], { name: 'one', replacesBatch: lost })
      const [first, second] = await Promise.all([journal.begin(replacing), journal.begin(replacing)])
      expect([first.kind, second.kind]).toEqual(['new', 'known'])
      expect(second.batch).toBe(first.batch)
      // The batch belongs to V3 from now on, even if the partner goes back to V2.
      expect(await journal.begin(onV2(['a'], 'one'))).toMatchObject({ kind: 'known', batch: first.batch })
    })

    test('treats a resend as new if all copies of the batch were answered and another batch then used the same ids', async (journal) => {
      const [first, second] = [
        await beginNew(journal, onV2(['a'], 'ids')),
        await beginNew(journal, onV2(['a'], 'ids')),
      ]
      journal.answered(first)
      await beginNew(journal, onV2(['b'], 'ids'))
      const again = batchOf(['a'], { name: 'ids' })
      expect(await journal.begin(again)).toMatchObject({ kind: 'known', batch: second })
      journal.answered(second)
      await beginNew(journal, onV2(['b'], 'ids'))
      expect(await journal.begin(again)).toMatchObject({ kind: 'new' })
    })

    test('sets isCut if a batch has 100 copies for V2, because not all of them are examined', async (journal) => {
      for (let time = 0; time < 99; time += 1) await beginNew(journal, onV2(['a'], 'one'))
      const again = batchOf(['a'], { name: 'one' })
      expect(await journal.begin(again)).not.toHaveProperty('isCut', true)
      const batch = await beginNew(journal, onV2(['a'], 'one'))
      expect(await journal.begin(again)).toMatchObject({ kind: 'known', batch, isCut: true })
    })

    test('does not let a resend replace a batch for V2 if a newer batch has a record with the same key', async (journal, opener) => {
      const first = await beginNew(journal, onV2(['a', 'b'], 'one'))
      const lost = await beginNew(journal, onV2(['a', 'b'], 'one'))
      await journal.settle(lost, [ofLost('notApplied', 0), ofLost('unknown', 1)])
      const replacing = batchOf(['a', 'b'], { name: 'one', replacesBatch: lost })
      const other = await opener.open()
      // The newer batch arrives before the replacing batch, in the same transaction.
      const same = batchOf(['b'], { name: 'two' })
      const [newer, begun] = await Promise.all([beginNew(journal, same), journal.begin(replacing)])
      const known = { kind: 'known', batch: lost, running: false, side: 'v2', earlier: [first] }
      expect(begun).toEqual({ ...known, newer: [{ batch: newer, position: 0 }] })
      expect(await other.begin(replacing)).toEqual({ ...known, newer: [{ batch: newer, position: 0 }] })
      await journal.settle(newer, [confirmed(0)])
      expect(await journal.begin(replacing)).toEqual({ ...known, newer: [] })
      expect((await journal.load(lost))?.records.map(({ superseded }) => superseded)).toEqual([false, true])
      const [one, two] = replacing.records
      const refused = { answer: '{}', reason: 'superseded' }
      const records = [one, { ...two, refused }].map((each) => ({ key: '', ...each }))
      expect(await other.begin({ ...replacing, records })).toMatchObject({ kind: 'new' })
    })

    test('lets a resend replace a batch for V2 if all newer records with the same keys were refused', async (journal) => {
      const lost = await beginNew(journal, onV2(['a'], 'one'))
      await journal.settle(lost, [ofLost('unknown', 0)])
      const newer = await beginNew(journal, batchOf(['a'], { name: 'two' }))
      await journal.settle(newer, [{ position: 0, state: 'refused', answer: '{}' }])
      expect(await journal.begin(batchOf(['a'], { name: 'one', replacesBatch: lost }))).toMatchObject({
        kind: 'new',
      })
    })

    test('does not let a resend replace an older copy of a batch for V2 if there is a newer copy', async (journal) => {
      const lost = await beginNew(journal, onV2(['a'], 'one'))
      const later = await beginNew(journal, onV2(['a'], 'one'))
      expect(await journal.begin(batchOf(['a'], { name: 'one', replacesBatch: lost }))).toMatchObject({
        kind: 'known',
        batch: later,
        earlier: [lost],
      })
    })

    test('keeps records of one key in order across V2, V3 and all instances', async (journal, opener) => {
      const other = await opener.open()
      const v3 = await beginNew(other, batchOf(['a']))
      const begun = await journal.begin(onV2(['a', 'b']))
      expect(afterOf(begun)).toEqual({ 0: [{ batch: v3, position: 0 }] })
      const next = await other.begin(batchOf(['b']))
      expect(afterOf(next)).toEqual({ 0: [{ batch: begun.batch, position: 1 }] })
      const refs = [{ batch: begun.batch, position: 0 }]
      expect(await journal.olderOpen(refs)).toEqual([{ batch: v3, position: 0 }])
      await other.settle(v3, [confirmed(0)])
      expect(await journal.olderOpen(refs)).toEqual([undefined])
    })

    test('reopens a record for a read-back even if newer records of its key wait to be sent to V2', async (journal) => {
      const older = await settledOnV3(journal, 'a', unknown(0, 5))
      const first = await beginNew(journal, onV2(['a']))
      const second = await beginNew(journal, onV2(['a']))
      const refs = { own: { batch: second, position: 0 }, older: { batch: older, position: 0 } }
      expect(await journal.olderUnsettled([refs.own])).toEqual([{ ...refs, isOpen: false }])
      expect((await journal.reopen(older, [0], undefined)).after.size).toBe(0)
      // `beforeRelay` allows the read-back, because all newer records are for V2 and wait for the reopened record.
      expect((await journal.reopen(older, [0], undefined, 'beforeRelay')).after.size).toBe(1)
      expect(await journal.olderUnsettled([refs.own])).toEqual([{ ...refs, isOpen: true }])
      await journal.settle(older, [confirmed(0)])
      expect(await journal.olderUnsettled([{ batch: first, position: 0 }])).toEqual([])
    })

    test('does not reopen a record for a read-back if a newer record of its key is for V3', async (journal) => {
      const older = await settledOnV3(journal, 'a', unknown(0, 5))
      await beginNew(journal, batchOf(['a']))
      await beginNew(journal, onV2(['a']))
      expect((await journal.reopen(older, [0], undefined, 'beforeRelay')).after.size).toBe(0)
    })

    test('supersedes older records of the key when V2 applied or may have applied a newer record', async (journal) => {
      for (const end of [confirmed(0), unknown(0)]) {
        const lost = await settledOnV3(journal, 'a', unknown(0, 5))
        const waiting = await settledOnV3(journal, 'b', parked(0))
        const batch = await beginNew(journal, onV2(['a', 'b']))
        await journal.settle(batch, [end, { ...end, position: 1 }])
        expect(await statesOf(journal, lost)).toEqual(['unknown, superseded'])
        expect(await statesOf(journal, waiting)).toEqual(['refused, superseded'])
      }
      expect(await journal.due(10, 10)).toEqual([])
    })

    test('supersedes a record when it is settled if V2 may already have applied a newer record of its key', async (journal) => {
      const ends = [ofLost('notApplied', 0), unknown(0, 5), parked(0), confirmed(0)]
      for (const end of ends) {
        const older = await beginNew(journal, batchOf(['a']))
        // Simulates that the instance of the newer batch died while the newer record waited for the older record.
        const newer = await beginNew(journal, onV2(['a']))
        await journal.settle(newer, [ofLost('unknown', 0)])
        await journal.settle(older, [end])
        const [state] = await statesOf(journal, older)
        expect(state).toBe(
          {
            notApplied: 'refused, superseded',
            unknown: 'unknown, superseded',
            parked: 'refused, superseded',
          }[end.state as string] ?? 'confirmed',
        )
      }
      expect(await journal.due(10, 10)).toEqual([])
    })

    test('does not supersede older records of the key when V2 refuses a newer record', async (journal) => {
      const waiting = await settledOnV3(journal, 'a', parked(0))
      const batch = await beginNew(journal, onV2(['a']))
      await journal.settle(batch, [{ position: 0, state: 'refused', answer: undefined }])
      expect(await statesOf(journal, waiting)).toEqual(['parked'])
      expect(await journal.due(10, 10)).toEqual([{ batch: waiting, positions: [0] }])
    })

    test('includes records for V2 in the totals, but does not count them as unsettled', async (journal) => {
      const batch = await beginNew(journal, onV2(['a', 'b']))
      expect(await journal.unsettled()).toEqual(new Map())
      await journal.settle(batch, [confirmed(0), unknown(1)])
      expect(await journal.balances()).toMatchObject([{ received: 2, open: 0, confirmed: 1, unknown: 1 }])
    })

    test('takes over batches that a dead instance was sending to V2', async (journal, opener) => {
      const other = await opener.open()
      const batch = await beginNew(other, onV2(['a'], 'one'))
      await other.close()
      const [taken] = await journal.takeOver()
      expect(taken?.batch).toBe(batch)
      await journal.settle(batch, [unknown(0)], taken?.lease)
      expect(await statesOf(journal, batch)).toEqual(['unknown'])
    })
  })
}
