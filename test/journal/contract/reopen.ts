import { describe, expect } from 'vitest'

import type { Settled } from '../../../src/journal/index.ts'
import { batchOf, beginNew, confirmed, START_MS } from '../batches.ts'
import type { Subject } from './subject.ts'

export function describeReopen({ name, test }: Subject): void {
  describe(`a journal in ${name} (reopen)`, () => {
    test('reopens records that wait for a retry or a resend, and returns their last outcomes until the records are settled again', async (journal) => {
      const old = await beginNew(journal, batchOf(['z', 'a']))
      const batch = await beginNew(journal, batchOf(['a', 'b', 'c', 'd']))
      await journal.settle(batch, [
        { position: 0, state: 'unknown', answer: 'first', reason: 'ADP_OUTCOME_UNKNOWN', retry: START_MS },
        { position: 1, state: 'refused', answer: 'final' },
        confirmed(2),
        { position: 3, state: 'notApplied', answer: 'later', retry: 'resend' },
      ])
      const { after, unknown } = await journal.reopen(batch, [0, 1, 2, 3, 4], undefined)
      expect(after).toEqual(
        new Map([
          [0, [{ batch: old, position: 1 }]],
          [3, []],
        ]),
      )
      expect(unknown).toEqual(new Map([[0, 'ADP_OUTCOME_UNKNOWN']]))
      expect((await journal.load(batch))?.records[0]).toEqual({
        position: 0,
        state: 'open',
        answer: 'first',
        reason: 'ADP_OUTCOME_UNKNOWN',
        retry: START_MS,
        superseded: false,
        attempts: 2,
      })
      expect((await journal.reopen(batch, [0, 3], undefined)).after).toEqual(new Map())
      await journal.settle(batch, [confirmed(0, 'second')])
      expect((await journal.load(batch))?.records[0]).toMatchObject({
        answer: 'second',
        attempts: 2,
        retry: undefined,
      })
      expect(await journal.balances()).toEqual([
        {
          partner: 'acme',
          received: 6,
          open: 3,
          confirmed: 2,
          refused: 1,
          unknown: 0,
          parked: 0,
          notApplied: 0,
        },
      ])
    })

    test('returns as predecessor an older record of the same batch that an earlier call reopened', async (journal) => {
      const batch = await beginNew(journal, batchOf(['a', 'b', 'a', 'a']))
      const parked = { state: 'parked', answer: 'ok', retry: START_MS } as const
      await journal.settle(
        batch,
        [0, 1, 2, 3].map((position) => ({ position, ...parked })),
      )
      expect((await journal.reopen(batch, [0], undefined)).after).toEqual(new Map([[0, []]]))
      // Records that are reopened together do not wait for each other, because one sender posts them in order.
      expect((await journal.reopen(batch, [3, 2, 1], undefined)).after).toEqual(
        new Map([
          [1, []],
          [2, [{ batch, position: 0 }]],
          [3, [{ batch, position: 0 }]],
        ]),
      )
    })

    test('does not reopen a record if its key has a newer open record', async (journal) => {
      const old = await beginNew(journal, batchOf(['a', 'b']))
      await journal.settle(
        old,
        [0, 1].map((position) => ({ position, state: 'parked', answer: 'ok', retry: START_MS })),
      )
      await beginNew(journal, batchOf(['a']))
      expect((await journal.reopen(old, [0, 1], undefined)).after).toEqual(new Map([[1, []]]))
    })

    test('does not reopen a record if a newer record of its key may have been applied', async (journal) => {
      const old = await beginNew(journal, batchOf(['a']))
      await journal.settle(old, [{ position: 0, state: 'parked', answer: 'ok', retry: START_MS }])
      const newer = await beginNew(journal, batchOf(['a']))
      const unknown = { position: 0, state: 'unknown', answer: 'lost' } as const
      await journal.settle(newer, [{ ...unknown, retry: START_MS }])
      expect((await journal.reopen(old, [0], undefined)).after).toEqual(new Map())
      expect((await journal.reopen(newer, [0], undefined)).after).toEqual(new Map([[0, []]]))
      // An older record must not be posted after a newer record whose outcome will never be known.
      await journal.settle(newer, [unknown])
      expect((await journal.reopen(old, [0], undefined)).after).toEqual(new Map())
    })

    test('reopens no record of a batch while another instance works on open records of the batch', async (journal, opener) => {
      const batch = await beginNew(journal, batchOf(['a', 'b']))
      await journal.settle(batch, [{ position: 0, state: 'parked', answer: 'ok', retry: START_MS }])
      const other = await opener.open()
      expect((await other.reopen(batch, [0], undefined)).after).toEqual(new Map())
      await journal.settle(batch, [confirmed(1)])
      expect((await other.reopen(batch, [0], undefined)).after).toEqual(new Map([[0, []]]))
      await expect(journal.settle(batch, [confirmed(0)])).rejects.toMatchObject({ code: 'ADP_JOURNAL_LOST' })
      await other.settle(batch, [confirmed(0)])
    })

    test('lists due records, beginning with the records that have been due longest', async (journal) => {
      const one = await beginNew(journal, batchOf(['a', 'b', 'c']))
      const two = await beginNew(journal, batchOf(['d', 'e']))
      const parked = (position: number, waitMs: number): Settled => ({
        position,
        state: 'parked',
        answer: 'ok',
        retry: START_MS + waitMs,
      })
      await journal.settle(one, [parked(0, 30), parked(1, 10), parked(2, 99)])
      await journal.settle(two, [parked(0, 5), parked(1, 20)])
      expect(await journal.due(START_MS + 30, 10)).toEqual([
        { batch: two, positions: [0, 1] },
        { batch: one, positions: [1, 0] },
      ])
      expect(await journal.due(START_MS + 30, 2)).toEqual([
        { batch: two, positions: [0] },
        { batch: one, positions: [1] },
      ])
      expect(await journal.due(START_MS, 10)).toEqual([])
    })
  })
}
