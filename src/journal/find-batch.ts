import type { Kysely } from 'kysely'

import type { BatchIdentity } from './journal.ts'
import type { JournalTables } from './schema/tables.ts'

/** The number under which `begin` would know the batch now; undefined: it would be new. */
export async function findBatch(
  db: Kysely<JournalTables>,
  { partner, ids, content, receivedMs }: BatchIdentity,
  replayForMs: number,
): Promise<number | undefined> {
  if (ids === undefined) return undefined
  const latest = await db
    .selectFrom('journal_batches')
    .select(['id', 'content', 'received_ms'])
    .where('ids', '=', ids)
    .where('partner', '=', partner)
    .orderBy('id', 'desc')
    .limit(1)
    .executeTakeFirst()
  if (latest === undefined || Math.round(receivedMs) - latest.received_ms >= replayForMs) return undefined
  return Buffer.compare(content, latest.content) === 0 ? latest.id : undefined
}
