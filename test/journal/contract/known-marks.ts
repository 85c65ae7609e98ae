import { describe, expect } from 'vitest'

import type { Journal, NewBatch, RecordRef, Settled } from '../../../src/journal/index.ts'
import { batchOf, beginNew, confirmed, START_MS } from '../batches.ts'
import type { Subject } from './subject.ts'

const HOUR_MS = 3_600_000
const at = (position: number, externalId: string, recordedMs: number): Settled => ({
  ...confirmed(position),
  mark: { externalId, recordedMs },
})
const known = async (journal: Journal, record: RecordRef, id: string, sinceMs?: number): Promise<unknown> => {
  const { confirmedAt, newer } = await journal.knownMarks(record, sinceMs)
  return [confirmedAt(id), newer]
}

export function describeKnownMarks({ name, test }: Subject): void {
  describe(`a journal in ${name} (knownMarks)`, () => {
    test('returns the marks of older confirmed records of the same key, whatever the letter case of the ids', async (journal) => {
      const older = await beginNew(journal, batchOf(['a', 'b', 'a', 'c']))
      await journal.settle(older, [at(0, 'M-1', START_MS + 1), at(1, 'm-2', START_MS), confirmed(3)])
      await journal.settle(older, [at(2, 'm-1', Number.NaN)])
      const own = await beginNew(journal, batchOf(['a', 'b', 'c', 'd']))
      expect(await known(journal, { batch: own, position: 0 }, 'm-1')).toEqual([[START_MS + 1, NaN], 'none'])
      expect(await known(journal, { batch: own, position: 0 }, 'm-2')).toEqual([[], 'none'])
      expect(await known(journal, { batch: own, position: 1 }, 'M-2')).toEqual([[START_MS], 'none'])
      for (const position of [2, 3])
        expect(await known(journal, { batch: own, position }, 'm-1')).toEqual([[], 'none'])
      expect(await known(journal, { batch: 999, position: 0 }, 'm-1')).toEqual([[], 'none'])
    })

    test('reports whether the key has a newer record that is open or confirmed', async (journal) => {
      const own = await beginNew(journal, batchOf(['a', 'b', 'a']))
      const ask = (position: number): Promise<unknown> => known(journal, { batch: own, position }, 'm')
      expect(await Promise.all([ask(0), ask(1), ask(2)])).toEqual([
        [[], 'open'],
        [[], 'none'],
        [[], 'none'],
      ])
      const newer = await beginNew(journal, batchOf(['b']))
      expect(await ask(1)).toEqual([[], 'open'])
      await journal.settle(newer, [{ position: 0, state: 'unknown', answer: undefined }])
      expect(await ask(1)).toEqual([[], 'open'])
      const refused = await beginNew(journal, batchOf(['c']))
      await journal.settle(refused, [{ position: 0, state: 'refused', answer: undefined }])
      const newest = await beginNew(journal, batchOf(['b']))
      await journal.settle(newest, [at(0, 'm', START_MS)])
      expect(await ask(1)).toEqual([[], 'confirmed'])
    })

    test('returns the records of the same key that were lost since the last confirmed record of the key', async (journal) => {
      const lost = (position: number): Settled => ({
        position,
        state: 'unknown',
        answer: undefined,
        retry: 1,
      })
      const first = await beginNew(journal, batchOf(['a', 'b']))
      await journal.settle(first, [lost(0), { ...lost(1), superseded: true, retry: undefined }])
      const second = await beginNew(journal, batchOf(['a', 'c']))
      await journal.settle(second, [at(0, 'm', START_MS), lost(1)])
      const third = await beginNew(journal, batchOf(['a', 'a', 'b', 'c']))
      await journal.settle(third, [lost(0), lost(2)])
      const ask = async (position: number): Promise<unknown> =>
        (await journal.knownMarks({ batch: third, position })).lost.map((one) => [one.batch, one.position])
      expect(await ask(0)).toEqual([])
      expect(await ask(1)).toEqual([[third, 0]])
      expect(await ask(2)).toEqual([[first, 1]])
      expect(await ask(3)).toEqual([[second, 1]])
      const { lostBefore } = await journal.knownMarks({ batch: third, position: 0 })
      expect(lostBefore.map((one) => [one.batch, one.position])).toEqual([[first, 0]])
    })

    test('counts a record received since sinceMs as newer than a batch that replaces an older batch', async (journal) => {
      const before = await beginNew(journal, batchOf(['a'], { receivedMs: START_MS }))
      const since = await beginNew(journal, batchOf(['a', 'b'], { receivedMs: START_MS + 1_000 }))
      await journal.settle(before, [at(0, 'm-1', 1)])
      await journal.settle(since, [at(0, 'm-2', 2), { position: 1, state: 'unknown', answer: undefined }])
      const content = Buffer.alloc(32)
      const own = await beginNew(journal, batchOf(['a', 'b'], { content, receivedMs: START_MS + 2_000 }))
      const ask = (position: number, id: string, sinceMs?: number): Promise<unknown> =>
        known(journal, { batch: own, position }, id, sinceMs)
      expect(await ask(0, 'm-2')).toEqual([[2], 'none'])
      expect(await ask(0, 'm-2', START_MS + 1_000)).toEqual([[], 'confirmed'])
      expect(await ask(0, 'm-1', START_MS + 1_000)).toEqual([[1], 'confirmed'])
      expect(await ask(1, 'm-1', START_MS + 1_000)).toEqual([[], 'open'])
    })

    test('does not count earlier copies of a batch for V2 as newer than the batch that replaces these copies', async (journal) => {
      const sent = batchOf(['a', 'b'], { name: 'copy', side: 'v2', receivedMs: START_MS })
      const before = await beginNew(journal, sent)
      const lost = [0, 1].map((position): Settled => ({ position, state: 'unknown', answer: undefined }))
      await journal.settle(before, lost)
      const other = await beginNew(journal, batchOf(['b'], { side: 'v2', receivedMs: START_MS + 1_000 }))
      await journal.settle(other, lost.slice(0, 1))
      const own = await beginNew(journal, {
        ...sent,
        side: undefined,
        replacesBatch: before,
        receivedMs: START_MS + 2_000,
      })
      expect(await known(journal, { batch: own, position: 0 }, 'm', START_MS)).toEqual([[], 'none'])
      expect(await known(journal, { batch: own, position: 1 }, 'm', START_MS)).toEqual([[], 'open'])
    })

    test('does not count the V3 resend of an older batch as newer than a batch that V2 received before the resend', async (journal) => {
      const lost: Settled[] = [{ position: 0, state: 'unknown', answer: undefined }]
      // The older write to V2 has another key here, because at shadow the journal does not know the keys of such writes.
      const sent = (content: number, receivedMs: number, key = 'a') =>
        batchOf([key], {
          name: `batch ${content}`,
          content: Buffer.alloc(32, content),
          side: 'v2',
          receivedMs,
        })
      const [older, newer] = [sent(1, START_MS, 'unknown'), sent(2, START_MS + 1_000)]
      const replaced: number[] = []
      for (const batch of [older, newer]) {
        const number = await beginNew(journal, batch)
        await journal.settle(number, lost)
        replaced.push(number)
      }
      const resend = (batch: NewBatch, at: number) =>
        beginNew(journal, { ...batch, records: [{ key: 'a' }], side: undefined, replacesBatch: replaced[at] ?? 0, receivedMs: START_MS + 2_000 }) // prettier-ignore
      const first = await resend(older, 0)
      expect(await known(journal, { batch: first, position: 0 }, 'm', START_MS)).toEqual([[], 'open'])
      await journal.settle(first, lost.map((one) => ({ ...one, superseded: true }))) // prettier-ignore
      const second = await resend(newer, 1)
      expect(await known(journal, { batch: second, position: 0 }, 'm', START_MS + 1_000)).toEqual([
        [],
        'none',
      ])
    })

    test('ignores records that were received more than thirty hours before the batch', async (journal) => {
      const older = await beginNew(journal, batchOf(['a'], { receivedMs: START_MS }))
      await journal.settle(older, [at(0, 'm', 1)])
      const own = await beginNew(journal, batchOf(['a'], { receivedMs: START_MS + 31 * HOUR_MS }))
      expect(await known(journal, { batch: own, position: 0 }, 'm')).toEqual([[], 'none'])
    })

    test('returns the marks of all older records in a batch of 1,200 records with the same key', async (journal) => {
      const keys = Array<string>(1_200).fill('a')
      const own = await beginNew(journal, batchOf(keys))
      await journal.settle(
        own,
        keys.slice(0, -1).map((_, position) => at(position, 'm', position)),
      )
      const last = keys.length - 1
      const asked = keys.map((_, position) => journal.knownMarks({ batch: own, position }))
      const all = await Promise.all(asked)
      expect(all[last]?.confirmedAt('m').at(-1)).toBe(last - 1)
      expect(all.map(({ newer }) => newer)).toEqual([
        ...Array<string>(last - 1).fill('confirmed'),
        'open',
        'none',
      ])
    })
  })
}
