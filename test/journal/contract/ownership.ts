import { describe, expect } from 'vitest'

import { batchOf, beginNew, confirmed, statesOf } from '../batches.ts'
import type { Subject } from './subject.ts'

export function describeOwnership({ name, test }: Subject): void {
  const [one, two] = [batchOf(['a'], { name: 'ids' }), batchOf(['b'], { name: 'ids' })]
  const known = (batch: number, running = true): object => ({ kind: 'known', batch, running })

  describe(`a journal in ${name} (resent batches)`, () => {
    test('tells two batches with the same ids apart by their bytes', async (journal, opener) => {
      const first = await beginNew(journal, one)
      const second = await beginNew(journal, two)
      const other = await opener.open()
      for (const each of [journal, other]) {
        expect(await each.begin(one)).toEqual(known(first))
        expect(await each.begin(two)).toEqual(known(second))
      }
    })

    test('treats a resend as new if the client got the reply and then reused the ids for other bytes', async (journal, opener) => {
      const first = await beginNew(journal, one)
      journal.answered(first)
      expect(await journal.begin(one)).toEqual(known(first))
      const second = await beginNew(journal, two)
      const other = await opener.open()
      const third = await other.begin(one)
      expect(third).toMatchObject({ kind: 'new', idsReused: true })
      expect(third.batch).toBeGreaterThan(second)
      // The second batch has not been answered, so the journal still recognises the batch.
      expect(await journal.begin(two)).toEqual(known(second))
      journal.answered(third.batch)
      journal.answered(second)
      expect(await journal.begin(two)).toEqual(known(second))
      expect(await journal.begin(one)).toMatchObject({ kind: 'new' })
    })

    test('treats a resend of an answered batch as new if another batch with the same ids was resent in the meantime', async (journal) => {
      const first = await beginNew(journal, one)
      const second = await beginNew(journal, two)
      journal.answered(second)
      expect(await journal.begin(one)).toEqual(known(first))
      expect(await journal.begin(two)).toMatchObject({ kind: 'new' })
    })

    test('remembers after a restart that a batch was answered', async (journal, opener) => {
      const first = await beginNew(journal, one)
      journal.answered(first)
      await journal.close()
      const next = await opener.open()
      await beginNew(next, two)
      expect(await next.begin(one)).toMatchObject({ kind: 'new' })
    })

    test('still recognises an answered batch if another owner reuses the ids', async (journal) => {
      const first = await beginNew(journal, one)
      journal.answered(first)
      expect(await journal.begin({ ...two, owner: 'another client' })).toMatchObject({ idsReused: false })
      expect(await journal.begin(one)).toEqual(known(first))
    })

    test('recognises a resend even if one transaction commits the original and the resend', async (journal) => {
      const begun = await Promise.all([one, two, one, two].map((batch) => journal.begin(batch)))
      expect(begun.map(({ kind }) => kind)).toEqual(['new', 'new', 'known', 'known'])
      expect(begun.map(({ batch }) => batch)).toEqual([
        begun[0]?.batch,
        begun[1]?.batch,
        begun[0]?.batch,
        begun[1]?.batch,
      ])
    })

    test('blocking() lists the open records for which records of newer batches wait', async (journal) => {
      const first = await beginNew(journal, batchOf(['a', 'b', 'a']))
      const second = await beginNew(journal, batchOf(['c', 'd']))
      expect(await journal.blocking([first, second])).toEqual([])
      const newer = await beginNew(journal, batchOf(['b', 'c']))
      expect(await journal.blocking([first, second])).toEqual([
        { batch: first, position: 1 },
        { batch: second, position: 0 },
      ])
      expect(await journal.blocking([])).toEqual([])
      await journal.settle(newer, [confirmed(0)])
      expect(await journal.blocking([first])).toEqual([])
    })

    test('never reopens a superseded record whose outcome is unknown', async (journal) => {
      const batch = await beginNew(journal, batchOf(['a']))
      const superseded = { state: 'unknown', answer: 'gone', reason: 'superseded', superseded: true } as const
      await journal.settle(batch, [{ position: 0, ...superseded }])
      expect(await statesOf(journal, batch)).toEqual(['unknown, superseded'])
      expect((await journal.reopen(batch, [0], undefined)).after).toEqual(new Map())
      expect(await journal.due(Number.MAX_SAFE_INTEGER, 10)).toEqual([])
    })
  })
}
