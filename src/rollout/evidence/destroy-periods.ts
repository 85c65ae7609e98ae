import { sql, type Transaction } from 'kysely'

import type { JournalDatabase, JournalTables } from '../../journal/index.ts'
import { overwriting } from './overwriting.ts'
import { readPairCounts } from './pair-counts.ts'

/** How long a key is kept. */
export const PERIOD_MS = 90 * 86_400_000
/** A period that began later than now by more than this: the clock of the database was ahead, and its age cannot be known. */
const AHEAD_MS = 86_400_000

/** Whether the key of a period is to be destroyed. */
export function isExpired({ since_ms: since }: { readonly since_ms: number }, nowMs: number): boolean {
  return nowMs >= since + PERIOD_MS || since > nowMs + AHEAD_MS
}

/** Destroys the keys of expired periods with their hashes; returns how many. */
export async function destroyPeriods(database: JournalDatabase): Promise<number> {
  const { db } = database
  const nowMs = database.nowMs()
  const expired = await db
    .selectFrom('evidence_periods')
    .select('id')
    .where('hash_key', 'is not', null)
    .where((eb) =>
      eb.or([
        eb('since_ms', '<=', sql<number>`${nowMs} - ${PERIOD_MS}`),
        eb('since_ms', '>', sql<number>`${nowMs} + ${AHEAD_MS}`),
      ]),
    )
    .execute()
  for (const { id } of expired) await destroyPeriod(database, id)
  return expired.length
}

/** Replaces the hashes of a period by what they add up to, and destroys its key; does nothing where that was done. */
export async function destroyPeriod(database: JournalDatabase, id: number): Promise<void> {
  await overwriting(database, (transaction) => replaceHashes(database, transaction, id))
  // The log of changes of SQLite still has the pages as they were.
  if (database.dialect === 'sqlite') await sql`PRAGMA wal_checkpoint(TRUNCATE)`.execute(database.db)
}

async function replaceHashes(
  { dialect }: JournalDatabase,
  db: Transaction<JournalTables>,
  id: number,
): Promise<void> {
  const row = await db
    .selectFrom('evidence_periods')
    .select('hash_key')
    .where('id', '=', id)
    .$if(dialect === 'postgres', (query) => query.forUpdate())
    .executeTakeFirst()
  if (row === undefined || row.hash_key === null) return
  const kept = JSON.stringify(await readPairCounts(db, id))
  await db.deleteFrom('evidence_hashes').where('period', '=', id).execute()
  await db.updateTable('evidence_periods').set({ hash_key: null, kept }).where('id', '=', id).execute()
}
