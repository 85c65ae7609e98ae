import { type Kysely, sql } from 'kysely'

import type { BatchIdentity, FoundBatch } from './journal.ts'
import { judgeArrival, MAX_SAME_IDS, type Recognition, toSameIds } from './judge-arrival.ts'
import { summedBatchColumns } from './schema/row-sums.ts'
import type { JournalTables } from './schema/tables.ts'

/** The batch that `begin` would know this one for now; undefined: it would be new. */
export async function findBatch(
  db: Kysely<JournalTables>,
  { owner, ids, content, receivedMs, side }: BatchIdentity,
  recognition: Recognition,
): Promise<FoundBatch | undefined> {
  if (ids === undefined) return undefined
  const rows = await db
    .selectFrom('journal_batches')
    .select(['id', ...summedBatchColumns, 'sum'])
    .where('ids', '=', ids)
    .where('owner_id', '=', owner)
    .where('retired', '=', 0)
    // Others with the same ids, however many there are, do not hide it.
    .orderBy(sql`content = ${content}`, 'desc')
    .orderBy('id', 'desc')
    .limit(MAX_SAME_IDS)
    .execute()
  const arriving = { content, receivedMs: Math.round(receivedMs), side }
  const { known, earlier, isCut } = judgeArrival(arriving, recognition, rows.map(toSameIds))
  return known && { batch: known.batch, side: known.side, earlier, isCut }
}
