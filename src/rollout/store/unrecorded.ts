import { type Kysely, sql } from 'kysely'

import { type JournalDatabase, type JournalTables, readUncleanEnd } from '../../journal/index.ts'
import { readNow } from './change-transaction.ts'
import type { Unrecorded } from './rollout-store.ts'

/** Keeps the time of the last batch that was relayed without a record. */
export async function noteUnrecorded(
  { db, nowMs }: { readonly db: Kysely<JournalTables> } & Pick<JournalDatabase, 'nowMs'>,
  partner: string,
  agoMs: number,
): Promise<void> {
  const at = sql<number>`${nowMs()} - ${sql.lit(Math.max(0, Math.floor(agoMs)))}`
  await db
    .insertInto('rollout_unrecorded')
    .values({ partner, at_ms: at })
    .onConflict((conflict) =>
      conflict
        .column('partner')
        .doUpdateSet({ at_ms: sql`excluded.at_ms` })
        .where(sql<boolean>`excluded.at_ms > rollout_unrecorded.at_ms`),
    )
    .execute()
}

export async function readUnrecorded(
  database: JournalDatabase,
  db: Kysely<JournalTables>,
  partner: string,
): Promise<Unrecorded> {
  const noted = await db
    .selectFrom('rollout_unrecorded')
    .select('at_ms')
    .where('partner', '=', partner)
    .executeTakeFirst()
  return {
    nowMs: await readNow(database, db),
    notedMs: noted?.at_ms,
    killedMs: await readUncleanEnd(db, 'killed'),
    lostMs: await readUncleanEnd(db, 'lost'),
  }
}
