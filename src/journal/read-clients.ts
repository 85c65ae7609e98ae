import { type Kysely, sql } from 'kysely'

import type { JournalTables } from './schema.ts'

/** A client of a partner that sent writes, as far back as the journal stores batches. */
export interface V2Client {
  readonly owner: string
  readonly requests: number
  readonly firstMs: number
  readonly lastMs: number
  /** The time of the latest request that V2 served, or 0 if V2 served none. */
  readonly lastOnV2Ms: number
}

/**
 * Returns the clients of a partner, the latest first. Leaves out clients whose credentials neither V2 nor V3 has accepted, because anyone
 * may send them.
 */
export async function readV2Clients(
  db: Kysely<JournalTables>,
  partner: string,
): Promise<readonly V2Client[]> {
  const { rows } = await sql<V2Client>`
    select owner, count(*) as "requests", min(received_ms) as "firstMs", max(received_ms) as "lastMs",
      max(on_v2 * received_ms) as "lastOnV2Ms"
    from journal_batches where partner = ${partner} and newcomer = 0 group by owner order by "lastMs" desc`.execute(
    db,
  )
  return rows
}
