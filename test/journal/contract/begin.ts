import { describe, expect } from 'vitest'

import { afterOf, batchOf, beginNew, confirmed, START_MS, textOf } from '../batches.ts'
import type { Subject } from './subject.ts'

const HOUR_MS = 3_600_000

/** How a journal begins batches. */
export function describeBegin({ name, promise }: Subject): void {
  describe(`${name}: begin`, () => {
    promise('keeps a batch with everything that finishes it', async (journal) => {
      const batch = await beginNew(
        journal,
        batchOf(['a', 'b'], {
          records: [{ key: 'a' }, { key: 'b', refused: { answer: 'no é', reason: 'ADP_FIELD' } }],
        }),
      )
      const record = { again: undefined, superseded: false, attempts: 1 }
      const stored = await journal.load(batch)
      expect({ ...stored, payload: textOf(stored) }).toEqual({
        batch,
        partner: 'acme',
        owner: 'the client',
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

    promise('knows the same batch again, and whether it is still running', async (journal) => {
      const again = batchOf(['a', 'b'], { name: 'one' })
      const batch = await beginNew(journal, again)
      expect(await journal.begin(again)).toEqual({ kind: 'known', batch, running: true })
      await journal.settle(batch, [confirmed(0)])
      expect(await journal.begin(again)).toEqual({ kind: 'known', batch, running: true })
      await journal.settle(batch, [confirmed(1)])
      expect(await journal.begin(again)).toEqual({ kind: 'known', batch, running: false })
    })

    promise('never lets times of receipt run backwards', async (journal) => {
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

    promise('keeps a note for all instances, the latest text of each name', async (journal, opener) => {
      const other = await opener.open()
      expect(await journal.readNote('a')).toBeUndefined()
      await journal.writeNote('a', 'one')
      await other.writeNote('a', 'two')
      await other.writeNote('b', 'three')
      expect([await journal.readNote('a'), await other.readNote('b')]).toEqual(['two', 'three'])
    })

    promise('knows one of two that come at the same moment', async (journal) => {
      const twice = await Promise.all([1, 2].map(() => journal.begin(batchOf(['a'], { name: 'one' }))))
      expect(twice.map(({ kind }) => kind)).toEqual(['new', 'known'])
    })

    promise(
      'takes nothing for known that differs in owner, ids or content, or has no ids',
      async (journal) => {
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
      },
    )

    promise('finds what it would know, and begins nothing', async (journal) => {
      const [one, later] = [batchOf(['a'], { name: 'one' }), START_MS + 24 * HOUR_MS]
      expect(await journal.find(one)).toBeUndefined()
      const batch = await beginNew(journal, one)
      const others = [
        batchOf(['a'], { name: 'one', owner: 'another client' }),
        batchOf(['b'], { name: 'one' }),
        batchOf(['a'], { name: 'two' }),
        batchOf(['a'], { name: 'one', receivedMs: later }),
        batchOf(['a']),
      ]
      expect(await Promise.all([one, ...others].map((each) => journal.find(each)))).toEqual([
        batch,
        ...others.map(() => undefined),
      ])
      await beginNew(journal, batchOf(['b'], { name: 'one' }))
      expect(await journal.find(one)).toBe(batch)
      expect(await journal.balances()).toMatchObject([{ received: 2 }])
    })

    promise('forgets that a batch came when the time to replay it is over', async (journal) => {
      const batch = await beginNew(journal, batchOf(['a'], { name: 'one' }))
      const later = (hours: number) =>
        journal.begin(batchOf(['a'], { name: 'one', receivedMs: START_MS + hours * HOUR_MS }))
      expect(await later(23)).toEqual({ kind: 'known', batch, running: true })
      expect(await later(24)).toMatchObject({ kind: 'new', idsReused: false })
    })

    promise('tells the older open records of the same keys, not those of the same batch', async (journal) => {
      const one = await beginNew(journal, batchOf(['a', 'b', 'a']))
      const begun = await journal.begin(batchOf(['c', 'a', 'b']))
      expect(afterOf(begun)).toEqual({
        1: [
          { batch: one, position: 0 },
          { batch: one, position: 2 },
        ],
        2: [{ batch: one, position: 1 }],
      })
      await journal.settle(one, [confirmed(0), { ...confirmed(1), state: 'unknown', again: START_MS }])
      expect(afterOf(await journal.begin(batchOf(['a', 'b'])))).toEqual({
        0: [
          { batch: one, position: 2 },
          { batch: begun.batch, position: 1 },
        ],
        1: [{ batch: begun.batch, position: 2 }],
      })
      const all = [0, 1, 2].map((position) => ({ batch: one, position }))
      expect(await journal.stillOpen(all)).toEqual([{ batch: one, position: 2 }])
    })
  })
}
