import { sql } from 'kysely'
import { describe, expect } from 'vitest'

import { afterOf, batchOf, beginNew, confirmed, statesOf } from '../batches.ts'
import type { Subject } from './subject.ts'

export function describeInstances({ name, test }: Subject): void {
  describe(`a journal in ${name} (several instances)`, () => {
    test('hands the open records of a dead instance to exactly one of several concurrent takeovers', async (journal, opener) => {
      const other = await opener.open()
      const done = await beginNew(other, batchOf(['a']))
      await other.settle(done, [confirmed(0)])
      const before = await beginNew(journal, batchOf(['b']))
      const left = await beginNew(other, batchOf(['a', 'b', 'c']))
      await other.settle(left, [confirmed(0)])
      expect(await journal.takeOver()).toEqual([])
      await other.close()
      const after = new Map([
        [1, [{ batch: before, position: 0 }]],
        [2, []],
      ])
      expect(await journal.takeOver()).toMatchObject([{ batch: left, after }])
      expect(await journal.takeOver()).toEqual([])
      expect(await statesOf(journal, left)).toEqual(['confirmed', 'open', 'open'])
      await journal.settle(left, [confirmed(1), confirmed(2)])
    })

    test('detects that the database was replaced by a copy from before a takeover', async (journal, opener) => {
      const { db } = journal.database
      const other = await opener.open()
      await beginNew(journal, batchOf(['a']))
      const { rows: copy } = await sql<{ slot: number; commits: number; last: number }>`
        select slot, commits, last_batch as last from journal_commits`.execute(db)
      const left = await beginNew(other, batchOf(['b']))
      await other.close()
      expect(await journal.takeOver()).toMatchObject([{ batch: left }])
      // Sets the tables back to the copy, which lacks the batch and would assign the number of the batch to another batch.
      for (const { slot, commits, last } of copy)
        await sql`update journal_commits set commits = ${commits}, last_batch = ${last} where slot = ${slot}`.execute(
          db,
        )
      await sql`delete from journal_payloads where batch = ${left}`.execute(db)
      await sql`delete from journal_records where batch = ${left}`.execute(db)
      await sql`delete from journal_batches where id = ${left}`.execute(db)
      await expect(journal.begin(batchOf(['c']))).rejects.toMatchObject({ code: 'ADP_JOURNAL_DAMAGED' })
    })

    test('hands a batch over only to an instance that is alive and asks for the batch', async (journal, opener) => {
      const other = await opener.open()
      const gone = await opener.open()
      const [kept, asked, askedByGone] = [
        await beginNew(journal, batchOf(['a'])),
        await beginNew(journal, batchOf(['b'])),
        await beginNew(journal, batchOf(['c'])),
      ]
      await gone.askFor(askedByGone)
      await gone.close()
      await other.askFor(asked)
      expect(await journal.handOver([kept])).toEqual([])
      expect(await journal.handOver([kept, asked, askedByGone])).toEqual([asked])
      await expect(journal.settle(asked, [confirmed(0)])).rejects.toMatchObject({ code: 'ADP_JOURNAL_LOST' })
      await other.settle(asked, [confirmed(0)])
      // The first instance may not settle even the same state, because only the instance that now has the batch answers the client.
      await expect(journal.settle(asked, [confirmed(0)])).rejects.toMatchObject({ code: 'ADP_JOURNAL_LOST' })
      expect(await journal.handOver([kept, asked, askedByGone])).toEqual([])
    })

    test('keeps the order of each key across instances', async (journal, opener) => {
      const other = await opener.open()
      const one = await beginNew(journal, batchOf(['a']))
      const begun = await other.begin(batchOf(['a']))
      expect(afterOf(begun)).toEqual({ 0: [{ batch: one, position: 0 }] })
      expect(await other.stillOpen([{ batch: one, position: 0 }])).toEqual([{ batch: one, position: 0 }])
      expect(await other.begin(batchOf(['x'], { name: 'one' }))).toMatchObject({ kind: 'new' })
      expect(await journal.begin(batchOf(['x'], { name: 'one' }))).toMatchObject({
        kind: 'known',
        running: true,
      })
      await journal.settle(one, [confirmed(0)])
      expect(await other.stillOpen([{ batch: one, position: 0 }])).toEqual([])
    })
  })
}
