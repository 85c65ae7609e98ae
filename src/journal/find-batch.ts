import type { Kysely } from 'kysely'

import type { BatchIdentity } from './journal.ts'
import { judgeArrival, MAX_SAME_IDS } from './same-ids.ts'
import { summedBatchColumns } from './schema/row-sums.ts'
import type { JournalTables } from './schema/tables.ts'
import { expectIntactBatch } from './store/damage.ts'

/** The number under which `begin` would know the batch now; undefined: it would be new. */
export async function findBatch(
  db: Kysely<JournalTables>,
  { owner, ids, content, receivedMs }: BatchIdentity,
  replayForMs: number,
): Promise<number | undefined> {
  if (ids === undefined) return undefined
  const rows = await db
    .selectFrom('journal_batches')
    .select(['id', ...summedBatchColumns, 'sum'])
    .where('ids', '=', ids)
    .where('owner_id', '=', owner)
    .where('retired', '=', 0)
    .orderBy('id', 'desc')
    .limit(MAX_SAME_IDS)
    .execute()
  const earlier = rows.map((row) => {
    expectIntactBatch(row.id, row)
    return {
      batch: row.id,
      content: row.content,
      receivedMs: row.received_ms,
      running: row.open > 0,
      answered: row.answered === 1,
    }
  })
  return judgeArrival(content, Math.round(receivedMs), replayForMs, earlier).known?.batch
}
