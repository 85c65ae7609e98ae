import { describe, expect, vi } from 'vitest'

import type { Predecessors } from '../../../src/journal/journal.ts'
import { afterOf, batchOf, beginNew, confirmed, START_MS, textOf } from '../batches.ts'
import { createJournalClock } from '../open-sqlite.ts'
import type { Subject } from './subject.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
/** The number of records of one key in each batch. A row for each pair of these records would make hundreds of millions of rows. */
const MANY = 20_000

/** Returns the number of records, and the distinct lists of predecessors that the records share. */
const sizesOf = (after: Predecessors): unknown => ({
  records: after.size,
  lists: [...new Set(after.values())],
})

export function describeBegin({ name, test }: Subject): void {
  describe(`a journal in ${name} (begin)`, () => {
    test('stores everything that recovery needs to finish a batch', async (journal) => {
      const batch = await beginNew(
        journal,
        batchOf(['a', 'b'], {
          records: [{ key: 'a' }, { key: 'b', refused: { answer: 'no é', reason: 'ADP_FIELD' } }],
        }),
      )
      const record = { retry: undefined, superseded: false, attempts: 1 }
      const stored = await journal.load(batch)
      expect({ ...stored, payload: textOf(stored) }).toEqual({
        batch,
        partner: 'acme',
        owner: 'the client',
        side: undefined,
        receivedMs: START_MS,
        payload: 'payload of a,b',
        credentials: undefined,
        records: [
          { ...record, position: 0, state: 'open', answer: undefined, reason: undefined },
          { ...record, position: 1, state: 'refused', answer: 'no é', reason: 'ADP_FIELD' },
        ],
      })
      expect(await journal.load(batch + 1)).toBeUndefined()
    })

    test('reports for a resent batch whether the first copy is still in progress', async (journal) => {
      const again = batchOf(['a', 'b'], { name: 'one' })
      const batch = await beginNew(journal, again)
      expect(await journal.begin(again)).toEqual({ kind: 'known', batch, running: true })
      await journal.settle(batch, [confirmed(0)])
      expect(await journal.begin(again)).toEqual({ kind: 'known', batch, running: true })
      await journal.settle(batch, [confirmed(1)])
      expect(await journal.begin(again)).toEqual({ kind: 'known', batch, running: false })
    })

    test('never stores an earlier time of receipt than the previous batch has', async (journal) => {
      const begin = async (receivedMs: number): Promise<unknown[]> => {
        const begun = await journal.begin(batchOf(['a'], { receivedMs }))
        if (begun.kind !== 'new') return []
        return [begun.receivedMs - START_MS, ((await journal.load(begun.batch))?.receivedMs ?? 0) - START_MS]
      }
      expect(await begin(START_MS + 5)).toEqual([5, 5])
      expect(await begin(START_MS - HOUR_MS)).toEqual([5, 5])
      expect(await begin(START_MS + 6)).toEqual([6, 6])
      const atOnce = [9, 7, 8].map((ms) => batchOf(['a'], { receivedMs: START_MS + ms }))
      const begun = await Promise.all(atOnce.map((batch) => journal.begin(batch)))
      expect(begun.map((one) => (one.kind === 'new' ? one.receivedMs - START_MS : one))).toEqual([9, 9, 9])
    })

    test('returns the latest note under a name, even if another instance wrote the note', async (journal, opener) => {
      const other = await opener.open()
      expect(await journal.readNote('a')).toBeUndefined()
      await journal.writeNote('a', 'one')
      await other.writeNote('a', 'two')
      await other.writeNote('b', 'three')
      expect([await journal.readNote('a'), await other.readNote('b')]).toEqual(['two', 'three'])
    })

    test('recognises a resent batch even if one transaction commits both copies', async (journal) => {
      const twice = await Promise.all([1, 2].map(() => journal.begin(batchOf(['a'], { name: 'one' }))))
      expect(twice.map(({ kind }) => kind)).toEqual(['new', 'known'])
    })

    test('treats a batch as new if the owner, the ids or the content differ, or if the batch has no ids', async (journal) => {
      await beginNew(journal, batchOf(['a'], { name: 'one' }))
      const others = [
        batchOf(['a'], { name: 'one', owner: 'another client' }),
        batchOf(['a'], { name: 'two' }),
        batchOf(['a']),
        batchOf(['a']),
      ]
      for (const other of others)
        expect(await journal.begin(other)).toMatchObject({ kind: 'new', idsReused: false })
      expect(await journal.begin(batchOf(['b'], { name: 'one' }))).toMatchObject({
        kind: 'new',
        idsReused: true,
      })
    })

    test('treats a resent batch as new after its replay period', async (_journal, opener) => {
      const clock = createJournalClock()
      const journal = await opener.open({ clock, leaseMs: DAY_MS })
      const batch = await beginNew(journal, batchOf(['a'], { name: 'one' }))
      const later = () => batchOf(['a'], { name: 'one', receivedMs: clock.wallMs() })
      await clock.pass(DAY_MS - HOUR_MS)
      expect(await journal.begin(later())).toEqual({ kind: 'known', batch, running: true })
      // The age of the journal is stored periodically, so a batch may be recognised a little longer than its replay period.
      const begun = vi.waitFor(
        async () => {
          await clock.pass(HOUR_MS)
          const result = await journal.begin(later())
          expect(result.kind).toBe('new')
          return result
        },
        { timeout: 60_000, interval: 50 },
      )
      expect(await begun).toMatchObject({ kind: 'new', idsReused: false })
    })

    test('recognises a resent batch for the full replay period, even if the wall clock is set forward', async (_journal, opener) => {
      const clock = createJournalClock()
      const one = batchOf(['a'], { name: 'one' })
      const late = () => batchOf(['a'], { name: 'one', receivedMs: clock.wallMs() })
      const journal = await opener.open({ clock, leaseMs: DAY_MS })
      const batch = await beginNew(journal, one)
      clock.setWall(30 * HOUR_MS)
      expect(await journal.begin(late())).toEqual({ kind: 'known', batch, running: true })
      await clock.pass(2 * HOUR_MS)
      await journal.close()
      // A process that starts with a wrong wall clock cannot notice that the clock is wrong.
      const next = await opener.open({ clock, leaseMs: DAY_MS })
      expect(await next.begin(late())).toEqual({ kind: 'known', batch, running: true })
    })

    test('returns as predecessor of each record the nearest older open record of the same key in another batch', async (journal) => {
      const one = await beginNew(journal, batchOf(['a', 'b', 'a']))
      const begun = await journal.begin(batchOf(['c', 'a', 'b']))
      expect(afterOf(begun)).toEqual({
        1: [{ batch: one, position: 2 }],
        2: [{ batch: one, position: 1 }],
      })
      await journal.settle(one, [confirmed(0), { ...confirmed(1), state: 'unknown', retry: START_MS }])
      expect(afterOf(await journal.begin(batchOf(['a', 'b'])))).toEqual({
        0: [{ batch: begun.batch, position: 1 }],
        1: [{ batch: begun.batch, position: 2 }],
      })
      const all = [0, 1, 2].map((position) => ({ batch: one, position }))
      expect(await journal.stillOpen(all)).toEqual([{ batch: one, position: 2 }])
    })

    test('returns one shared list of predecessors if two batches have thousands of records with the same key', async (journal, opener) => {
      const keys = Array<string>(MANY).fill('a')
      const one = await beginNew(journal, batchOf(keys))
      const begun = await journal.begin(batchOf(keys))
      if (begun.kind !== 'new') throw new Error('the batch is known')
      const nearest = { batch: one, position: MANY - 1 }
      expect(sizesOf(begun.after)).toEqual({ records: MANY, lists: [[nearest]] })
      const own = { batch: begun.batch, position: 0 }
      expect(await journal.olderOpen([own, nearest])).toEqual([nearest, { ...nearest, position: MANY - 2 }])

      await journal.settle(
        begun.batch,
        keys.map((_, position) => ({ position, state: 'parked', answer: 'ok', retry: START_MS })),
      )
      const { after } = await journal.reopen(begun.batch, [...keys.keys()], undefined)
      expect(sizesOf(after)).toEqual({ records: MANY, lists: [[nearest]] })

      await journal.close()
      const taken = await (await opener.open()).takeOver()
      expect(taken.map((each) => sizesOf(each.after))).toEqual([
        { records: MANY, lists: [[]] },
        { records: MANY, lists: [[nearest]] },
      ])
    })

    test('skips a settled record, and returns the next older open record of the key as predecessor', async (journal) => {
      const one = await beginNew(journal, batchOf(['a', 'b', 'a']))
      const two = await beginNew(journal, batchOf(['a']))
      const begun = await journal.begin(batchOf(['b', 'a', 'c']))
      expect(afterOf(begun)).toEqual({
        0: [{ batch: one, position: 1 }],
        1: [{ batch: two, position: 0 }],
      })
      await journal.settle(two, [{ position: 0, state: 'notApplied', answer: 'late', retry: 'resend' }])
      const own = [2, 0, 1].map((position) => ({ batch: begun.batch, position }))
      const older = (position: number): unknown => ({ batch: one, position })
      expect(await journal.olderOpen(own)).toEqual([undefined, older(1), older(2)])
      expect(await journal.olderOpen([{ batch: one, position: 2 }])).toEqual([older(0)])
      await journal.settle(one, [confirmed(2)])
      expect(await journal.olderOpen(own)).toEqual([undefined, older(1), older(0)])
      await journal.settle(one, [confirmed(0), confirmed(1)])
      expect(await journal.olderOpen(own)).toEqual([undefined, undefined, undefined])
    })
  })
}
