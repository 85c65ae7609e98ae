import { describe, expect } from 'vitest'

import type { Settled } from '../../../src/journal/index.ts'
import { afterOf, batchOf, beginNew, confirmed, START_MS, statesOf } from '../batches.ts'
import type { Subject } from './subject.ts'

const HOUR_MS = 3_600_000

export function describeSettle({ name, test }: Subject): void {
  describe(`a journal in ${name} (settle)`, () => {
    test('stores outcomes, and changes nothing if the same outcomes are stored again', async (journal) => {
      const batch = await beginNew(journal, batchOf(['a', 'b', 'c']))
      const outcomes: Settled[] = [
        {
          position: 2,
          state: 'unknown',
          answer: undefined,
          reason: 'ADP_OUTCOME_UNKNOWN',
          retry: START_MS + 5,
        },
        { position: 0, state: 'refused', answer: 'bad', reason: 'ATT_VAL_2', deadLetter: true },
        { position: 1, state: 'notApplied', answer: 'later', reason: 'ADP_BUDGET_EXCEEDED', retry: 'resend' },
      ]
      await journal.settle(batch, outcomes)
      await journal.settle(batch, outcomes)
      const stored = await journal.load(batch)
      expect(
        stored?.records.map(({ state, answer, reason, retry }) => [state, answer, reason, retry]),
      ).toEqual([
        ['refused', 'bad', 'ATT_VAL_2', undefined],
        ['notApplied', 'later', 'ADP_BUDGET_EXCEEDED', 'resend'],
        ['unknown', undefined, 'ADP_OUTCOME_UNKNOWN', START_MS + 5],
      ])
      expect(await journal.balances()).toEqual([
        {
          partner: 'acme',
          received: 3,
          open: 0,
          confirmed: 0,
          refused: 1,
          unknown: 1,
          parked: 0,
          notApplied: 1,
        },
      ])
      expect(await journal.deadLetters()).toEqual(new Map([['acme', 1]]))
    })

    test('rounds times to whole milliseconds, and stores answers and reasons with any characters', async (journal) => {
      const batch = await beginNew(journal, batchOf(['a'], { receivedMs: START_MS + 0.4 }))
      const odd = 'é\u0000\ud800\n😀'
      const outcome: Settled = {
        position: 0,
        state: 'parked',
        answer: odd,
        reason: `X\u0000${'y'.repeat(300)}`,
        retry: START_MS + 0.5,
      }
      await journal.settle(batch, [outcome])
      await journal.settle(batch, [outcome])
      expect(await journal.load(batch)).toMatchObject({
        receivedMs: START_MS,
        // The replacement character takes the place of the lone surrogate, which UTF-8 cannot encode.
        records: [{ answer: 'é\u0000\ufffd\n😀', reason: `X${'y'.repeat(199)}`, retry: START_MS + 1 }],
      })
      expect(await journal.due(START_MS + 0.9, 1)).toEqual([])
      expect(await journal.due(START_MS + 1.1, 1)).toEqual([{ batch, positions: [0] }])
      // A record is due at once if the clock was set back by an hour.
      expect(await journal.due(START_MS - HOUR_MS, 1)).toEqual([{ batch, positions: [0] }])
    })

    test('refuses all outcomes of a call if one of its records already has a different outcome', async (journal) => {
      const batch = await beginNew(journal, batchOf(['a', 'b']))
      await journal.settle(batch, [confirmed(1)])
      const other: Settled[] = [confirmed(0), { position: 1, state: 'refused', answer: 'no' }]
      const [lost, kept] = await Promise.allSettled([
        journal.settle(batch, other),
        journal.begin(batchOf(['c'])),
      ])
      expect(lost).toMatchObject({ status: 'rejected', reason: { code: 'ADP_JOURNAL_LOST' } })
      expect(kept.status).toBe('fulfilled')
      expect(await statesOf(journal, batch)).toEqual(['open', 'confirmed'])
      await expect(journal.settle(batch + 100, [confirmed(0)])).rejects.toMatchObject({
        code: 'ADP_JOURNAL_LOST',
      })
    })

    test('accepts an empty list of outcomes for a stored batch', async (journal) => {
      const batch = await beginNew(journal, batchOf(['a']))
      await Promise.all([journal.settle(batch, []), journal.settle(batch, [confirmed(0)])])
      await journal.settle(batch, [])
      expect(await statesOf(journal, batch)).toEqual(['confirmed'])
      await expect(journal.settle(batch + 1, [])).rejects.toMatchObject({ code: 'ADP_JOURNAL_LOST' })
    })

    test('settles consecutive records in one call even if some of the records are already settled', async (journal) => {
      const refused = { answer: 'no', reason: 'ADP_FIELD' }
      const keys = ['a', 'b', 'c', 'd', 'e', 'f', 'g']
      const batch = await beginNew(journal, {
        ...batchOf(keys),
        records: keys.map((key, position) => (position % 4 === 1 ? { key, refused } : { key })),
      })
      expect(await statesOf(journal, batch)).toEqual([
        'open', 'refused', 'open', 'open', 'open', 'refused', 'open',
      ]) // prettier-ignore
      await journal.settle(batch, [confirmed(3)])
      await journal.settle(batch, [confirmed(6), confirmed(2), confirmed(3), confirmed(4)])
      const stored = await journal.load(batch)
      expect(stored?.records.map(({ state, answer }) => [state, answer])).toEqual([
        ['open', undefined], ['refused', 'no'], ['confirmed', 'answer 2'], ['confirmed', 'answer 3'],
        ['confirmed', 'answer 4'], ['refused', 'no'], ['confirmed', 'answer 6'],
      ]) // prettier-ignore
      expect(await journal.balances()).toMatchObject([{ received: 7, open: 1, confirmed: 4, refused: 2 }])
      // Each record keeps its own key, so a newer batch waits for the open record.
      expect(afterOf(await journal.begin(batchOf(['g', 'a', 'c'])))).toEqual({
        1: [{ batch, position: 0 }],
      })
      const late: Settled[] = [
        { position: 0, state: 'unknown', answer: undefined },
        confirmed(1),
        confirmed(2),
      ]
      await expect(journal.settle(batch, late)).rejects.toMatchObject({ code: 'ADP_JOURNAL_LOST' })
      expect((await statesOf(journal, batch))[0]).toBe('open')
    })

    test('supersedes older records of a key when a newer record is confirmed', async (journal) => {
      const retry = START_MS
      const old = await beginNew(journal, batchOf(['a', 'b', 'c', 'd']))
      await journal.settle(old, [
        { position: 0, state: 'parked', answer: 'ok', reason: 'ATT_VAL_2', retry },
        { position: 1, state: 'unknown', answer: '?', reason: 'ADP_OUTCOME_UNKNOWN', retry },
        { position: 2, state: 'notApplied', answer: 'later', retry: 'resend' },
      ])
      const newer = await beginNew(journal, batchOf(['a', 'b', 'c', 'd'], { partner: 'other' }))
      await journal.settle(
        newer,
        [0, 1, 2].map((position) => confirmed(position)),
      )
      expect(await statesOf(journal, old)).toEqual([
        'refused, superseded',
        'unknown, superseded',
        'refused, superseded',
        'open',
      ])
      expect((await journal.load(old))?.records[0]).toMatchObject({ reason: 'superseded', answer: 'ok' })
      expect(await journal.due(START_MS + HOUR_MS, 10)).toEqual([])
      expect((await journal.reopen(old, [0, 1, 2], undefined)).after).toEqual(new Map())
      expect(await journal.balances()).toEqual([
        {
          partner: 'acme',
          received: 4,
          open: 1,
          confirmed: 0,
          refused: 2,
          unknown: 1,
          parked: 0,
          notApplied: 0,
        },
        {
          partner: 'other',
          received: 4,
          open: 1,
          confirmed: 3,
          refused: 0,
          unknown: 0,
          parked: 0,
          notApplied: 0,
        },
      ])
    })

    test('supersedes older records of a key if a newer record may have been applied and will not be read back', async (journal) => {
      const retry = START_MS
      const old = await beginNew(journal, batchOf(['a', 'b']))
      await journal.settle(
        old,
        [0, 1].map((position) => ({ position, state: 'parked', answer: 'ok', retry })),
      )
      const newer = await beginNew(journal, batchOf(['a', 'b']))
      await journal.settle(newer, [
        { position: 0, state: 'unknown', answer: '?', reason: 'overwritten', deadLetter: true },
        // A record with an unknown outcome that will be retried blocks the older record without superseding it.
        { position: 1, state: 'unknown', answer: '?', retry },
      ])
      expect(await statesOf(journal, old)).toEqual(['refused, superseded', 'parked'])
      expect((await journal.reopen(old, [0, 1], undefined)).after).toEqual(new Map())
    })

    test('supersedes a record that is settled in the same call as a newer record of its key', async (journal, opener) => {
      const batch = await beginNew(journal, batchOf(['a', 'a', 'a', 'b']))
      await journal.settle(batch, [
        { position: 0, state: 'parked', answer: 'ok', retry: START_MS },
        { position: 1, state: 'unknown', answer: undefined },
        { position: 3, state: 'parked', answer: 'ok', retry: START_MS },
        confirmed(2),
      ])
      expect(await statesOf(journal, batch)).toEqual([
        'refused, superseded',
        'unknown',
        'confirmed',
        'parked',
      ])
      expect(await (await opener.inspect()).balances()).toMatchObject([
        { holds: true, refused: 1, parked: 1 },
      ])
    })

    test('counts a superseded record once if two newer records of its key are confirmed', async (journal, opener) => {
      const old = await beginNew(journal, batchOf(['a']))
      await journal.settle(old, [{ position: 0, state: 'parked', answer: 'ok', retry: START_MS }])
      const newer = await beginNew(journal, batchOf(['a', 'a']))
      await journal.settle(newer, [confirmed(0), confirmed(1)])
      expect(await journal.balances()).toMatchObject([{ received: 3, confirmed: 2, refused: 1, parked: 0 }])
      expect(await (await opener.inspect()).balances()).toMatchObject([{ holds: true }])
    })

    test('does not supersede a record when a newer record of its key is refused', async (journal) => {
      const old = await beginNew(journal, batchOf(['a']))
      await journal.settle(old, [{ position: 0, state: 'parked', answer: 'ok', retry: START_MS }])
      const newer = await beginNew(journal, batchOf(['a']))
      await journal.settle(newer, [{ position: 0, state: 'refused', answer: 'no' }])
      expect(await statesOf(journal, old)).toEqual(['parked'])
    })
  })
}
