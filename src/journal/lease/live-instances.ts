import { type Kysely, type RawBuilder, sql } from 'kysely'

import type { JournalDatabase } from '../journal-database.ts'
import type { JournalTables } from '../schema/tables.ts'

/** An instance that others must count with. */
export interface LiveInstance {
  /** Number of its lease. */
  readonly instance: number
  readonly host: string
  readonly pid: number
}

/** A lease that was not renewed for this many times its length has ended. Its holder counts on less than one. */
export const LEASES_MISSED = 1.2

/** The length of a lease of an older version, ms. */
const LEASE_MS = 10_000

/** Instances whose lease has not ended by the time of the database, with the margin that is left to them before others take over. */
export async function readLiveInstances(
  db: Kysely<JournalTables>,
  database: Pick<JournalDatabase, 'nowMs'>,
): Promise<readonly LiveInstance[]> {
  return db
    .selectFrom('journal_instances')
    .select(['id as instance', 'host', 'pid'])
    .where(isLive(database))
    .orderBy('id')
    .execute()
}

/** True for the row of a live instance; SQL. */
export function isLive({ nowMs }: Pick<JournalDatabase, 'nowMs'>): RawBuilder<boolean> {
  const missed = LEASES_MISSED - 1
  return sql<boolean>`lease_until + coalesce(lease_ms, ${sql.lit(LEASE_MS)}) * ${sql.lit(missed)} > ${nowMs()}`
}
