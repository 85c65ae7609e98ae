import { hash } from 'node:crypto'

import { sql } from 'kysely'
import * as z from 'zod'

import type { JournalDatabase } from '../../journal/index.ts'
import { parseStored, settingSchema } from '../stage.ts'
import { type Db, type KeptStage, rowsOf } from './stage-rows.ts'

/** The row of one entry of the audit trail. Entries are added and never changed. */
interface AuditRow {
  /** The number of the entry: 1, 2, 3 and so on, without gaps. */
  readonly entry: number
  /** Empty for an entry that concerns no partner. */
  readonly partner: string
  readonly action: string
  /** The other members of an `AuditEntry` as JSON. Its member `kept` is the `KeptStage` of the partner after the entry. */
  readonly content: string
  /** The hash over the hash of the previous entry and all other columns of this entry. */
  readonly hash: string
}

/** The last entry of the trail. A trail that contains this entry has all earlier entries unchanged. */
export interface Head {
  readonly entries: number
  /** The hash of the last entry, or an empty text if there is no entry. */
  readonly hash: string
}

/** An action in the console that changes no stage: retrying records, clearing dead letters, revealing values, or switching the sandbox. */
export type NotedAction = 'retry' | 'clear' | 'reveal' | 'sandbox'

/** The action that an entry of the audit trail records. `dismiss`: an operator declared that a lost instance is off. */
export type AuditAction = 'set' | 'back' | 'guard' | 'propose' | 'approve' | 'commit' | 'withdraw' | 'expire' | 'dismiss' | NotedAction // prettier-ignore

const contentSchema = z.object({
  atMs: z.number(),
  by: z.string(),
  from: settingSchema.optional().catch(undefined),
  to: settingSchema.optional().catch(undefined),
  revision: z.number(),
  reason: z.string(),
})

export interface AuditEntry
  extends Readonly<z.infer<typeof contentSchema>>, Pick<AuditRow, 'entry' | 'partner'> {
  readonly action: AuditAction
}

/** The content that is shown for an entry whose stored content cannot be parsed. */
const unreadable = { atMs: 0, by: '', from: undefined, to: undefined, revision: 0, reason: '(unreadable)' }

function fromAuditRow({ entry, partner, action, content }: AuditRow): AuditEntry {
  const { from, to, ...others } = parseStored(contentSchema, content) ?? unreadable
  // Casts any action, so that an action that this version does not know is shown unchanged.
  return { entry, partner, action: action as AuditAction, from, to, ...others }
}

export const hashOfRow = (
  previous: string,
  { entry, partner, action, content }: Omit<AuditRow, 'hash'>,
): string => hash('sha256', previous + JSON.stringify([entry, partner, action, content]))

/** Adds an entry to the trail and returns the new head. The caller must hold the lock of `lockTrail`. */
export async function addEntry(
  db: Db,
  head: Head,
  added: Omit<AuditEntry, 'entry'>,
  kept: KeptStage | undefined,
): Promise<Head> {
  const { partner, action, ...members } = added
  const row = { entry: head.entries + 1, partner, action, content: JSON.stringify({ ...members, kept }) }
  const next = hashOfRow(head.hash, row)
  await sql`insert into rollout_audit (entry, partner, action, content, hash)
    values (${row.entry}, ${partner}, ${action}, ${row.content}, ${next})`.execute(db)
  return { entries: row.entry, hash: next }
}

/**
 * The number of the lock. The number differs from the lock of the journal, so that changes of stages and writes do not wait for each other.
 */
const TRAIL_LOCK = 7_238_519_462

/** Lets only one transaction at a time add to the trail. SQLite needs no lock, because it has only one writer at a time. */
export async function lockTrail({ dialect }: JournalDatabase, db: Db): Promise<void> {
  if (dialect === 'postgres') await sql`select pg_advisory_xact_lock(${sql.lit(TRAIL_LOCK)})`.execute(db)
}

export async function readHead(db: Db): Promise<Head> {
  const [head] = await rowsOf(db, sql<Head>`select entry as entries, hash from rollout_audit order by entry desc limit 1`) // prettier-ignore
  return head ?? { entries: 0, hash: '' }
}

/** Selects entries of the trail. A member that is absent does not limit the selection. */
export interface HistoryFilter {
  readonly partner?: string | undefined
  readonly limit?: number | undefined
}

/** Reads entries of the trail, oldest first. With a limit, reads the newest entries. */
export async function readHistory(db: Db, { partner, limit }: HistoryFilter): Promise<readonly AuditEntry[]> {
  const where = partner === undefined ? sql`` : sql`where partner = ${partner}`
  const some = limit === undefined ? sql`` : sql`limit ${limit}`
  const rows = await rowsOf(db, sql<AuditRow>`select * from rollout_audit ${where} order by entry desc ${some}`) // prettier-ignore
  return rows.map(fromAuditRow).reverse()
}

export interface Verified {
  readonly head: Head
  /** The first fault, or `undefined` if the entries form a chain that continues the known chain. */
  readonly broken: { readonly entry: number; readonly what: string } | undefined
}

/** Formats a fault as the end of a sentence that begins with "The audit trail is". */
export const describeFault = ({ entry, what }: NonNullable<Verified['broken']>): string =>
  `broken at entry ${entry}: ${what}.`

/** Checks that the trail is a complete chain of hashes, and that it contains the known head. */
export async function verifyTrail(db: Db, known: Head | undefined): Promise<Verified> {
  const rows = await rowsOf(db, sql<AuditRow>`select * from rollout_audit order by entry`)
  let head: Head = { entries: 0, hash: '' }
  for (const row of rows) {
    const broken = faultOfRow(row, head)
    if (broken !== undefined) return { head, broken }
    head = { entries: row.entry, hash: row.hash }
  }
  return { head, broken: known && faultOfKnown(known, head, rows[known.entries - 1]?.hash) }
}

function faultOfRow(row: AuditRow, { entries, hash: previous }: Head): Verified['broken'] {
  const expected = entries + 1
  if (row.entry !== expected) return { entry: expected, what: `entry ${expected} is missing` }
  if (row.hash === hashOfRow(previous, row)) return undefined
  return { entry: row.entry, what: `entry ${row.entry} was altered` }
}

function faultOfKnown(known: Head, head: Head, found: string | undefined): Verified['broken'] {
  const { entries } = known
  if (entries > head.entries)
    return { entry: head.entries + 1, what: `the trail ends after entry ${head.entries}, but this machine has seen ${entries} entries` } // prettier-ignore
  if (entries === 0 || found === known.hash) return undefined
  return { entry: entries, what: `entry ${entries} differs from the entry that this machine has seen` }
}
