import { type Kysely, type RawBuilder, sql } from 'kysely'
import * as z from 'zod'

import type { JournalDatabase, JournalTables } from '../../journal/index.ts'
import { parseStored, settingSchema } from '../stage.ts'

export type Db = Kysely<JournalTables>

export const rowsOf = async <Row>(db: Db, statement: RawBuilder<Row>): Promise<readonly Row[]> =>
  (await statement.execute(db)).rows

/** Returns the clause that locks rows. SQLite needs no clause, because it has only one writer at a time. */
export const forUpdate = ({ dialect }: Pick<JournalDatabase, 'dialect'>): RawBuilder<unknown> =>
  dialect === 'postgres' ? sql`for update` : sql``

/** A setting with its revision, which grows with every change. A withdrawn change leaves a gap in the revisions. */
const changed = settingSchema.extend({ revision: z.int().nonnegative(), by: z.string(), reason: z.string() })

const stateSchema = changed.extend({
  partner: z.string(),
  /** When the partner reached this stage, in milliseconds since the epoch. Changes of the percentage and the lists do not count. */
  sinceMs: z.number(),
})
export type StageState = Readonly<z.infer<typeof stateSchema>>

const pendingSchema = changed.extend({
  from: settingSchema,
  /** The time of expiry by the clock of the database, in milliseconds since the epoch. */
  expiresMs: z.number(),
  /** How long the change could wait when it was stored, in milliseconds. */
  forMs: z.number(),
  /** True if the change waits for another operator's approval. Instances ignore the change until then. */
  needsApproval: z.boolean(),
  quietMs: z.number(),
})
export type PendingChange = Readonly<z.infer<typeof pendingSchema>>

export interface PartnerRollout {
  /** The committed stage, or `undefined` until the first commit. Until then the stage with which the partner began counts. */
  readonly state: StageState | undefined
  /** The pending change, or `undefined` if no change can still be committed. */
  readonly pending: PendingChange | undefined
}

/** The stage of a partner after an entry of the audit trail. The latest entry of a partner defines its stage. */
const keptSchema = z.object({
  state: stateSchema,
  lastRevision: z.int().nonnegative(),
  pending: pendingSchema.optional(),
})
export type KeptStage = Readonly<z.infer<typeof keptSchema>>

const contentSchema = z.object({ kept: keptSchema })

/**
 * Returns true if a pending change has expired. Its deadline has passed, or the database clock was set back so far that the change would
 * hold back writes for more than twice its duration.
 */
export const hasExpired = ({ expiresMs, forMs }: PendingChange, nowMs: number): boolean =>
  expiresMs <= nowMs || expiresMs - nowMs > 2 * forMs

export interface FoundStage {
  readonly partner: string
  readonly content: string
}

export const latestEntries = sql<FoundStage>`select partner, content from rollout_audit
  where entry in (select max(entry) from rollout_audit where partner <> '' group by partner)`

/** Parses the stage of an entry. Returns `undefined` if another program wrote the entry, or if the entry is about another partner. */
export function parseStage({ partner, content }: FoundStage): KeptStage | undefined {
  const kept = parseStored(contentSchema, content)?.kept
  return kept?.state.partner === partner ? kept : undefined
}

/** Reads the stage of a partner from its latest readable entry. Returns `undefined` if there is no such entry. */
export async function readStage(db: Db, partner: string): Promise<KeptStage | undefined> {
  const rows = await rowsOf(
    db,
    sql<FoundStage>`select partner, content from rollout_audit where partner = ${partner} order by entry desc`,
  )
  for (const row of rows) {
    const kept = parseStage(row)
    if (kept !== undefined) return kept
  }
  return undefined
}

export async function readNow(database: JournalDatabase, db: Db): Promise<number> {
  const [row] = await rowsOf(db, sql<{ now: number }>`select ${database.nowMs()} as now`)
  return Number(row?.now)
}
