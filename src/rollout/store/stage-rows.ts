import { timingSafeEqual } from 'node:crypto'

import { type Kysely, type RawBuilder, sql } from 'kysely'

import { type JournalDatabase, type JournalTables, macOf } from '../../journal/index.ts'
import { isSetting, type StageSetting } from '../stage.ts'

export type Db = Kysely<JournalTables>
export type MacKey = Pick<JournalDatabase['macKey'], 'key' | 'keyed'>

/** Runs a statement; gives its rows. */
export const rowsOf = async <Row>(db: Db, statement: RawBuilder<Row>): Promise<readonly Row[]> =>
  (await statement.execute(db)).rows

/** Locks the rows that a statement reads: SQLite has one writer at a time anyway. */
export const forUpdate = ({ dialect }: Pick<JournalDatabase, 'dialect'>): RawBuilder<unknown> =>
  dialect === 'postgres' ? sql`for update` : sql``

/** The stage of one partner. */
export interface StageRow {
  readonly partner: string
  /** JSON of `KeptStage`. */
  readonly content: string
  readonly mac: string
}

/** The stage of a partner as the store has it. */
export interface StageState extends StageSetting {
  readonly partner: string
  /** Grows with every change; one that was withdrawn leaves a gap. */
  readonly revision: number
  /** Since when the partner is at this stage; a change of the share or of the lists does not count. */
  readonly sinceMs: number
  readonly by: string
  readonly reason: string
}

/** A change that is not committed yet. */
export interface PendingChange extends StageSetting {
  readonly from: StageSetting
  /** That it will have. No other change ever has it, so an acknowledgement of it is of no other. */
  readonly revision: number
  readonly by: string
  readonly reason: string
  /** By the clock of the database. */
  readonly expiresMs: number
  /** The time that it had then. */
  readonly forMs: number
  /** True: it waits for another operator, and instances take no notice of it until then. */
  readonly needsApproval: boolean
  readonly quietMs: number
}

/** What the store knows of a partner. */
export interface PartnerRollout {
  /** Undefined: that of the file counts, until the first change is committed. */
  readonly state: StageState | undefined
  /** Undefined: there is none, and none can be committed any longer. */
  readonly pending: PendingChange | undefined
}

/** A row that is as it was written. */
export interface KeptStage {
  readonly state: StageState
  readonly lastRevision: number
  readonly pending: PendingChange | undefined
  /** The last row of the trail about the partner. */
  readonly entry: number
}

/**
 * True once a change can no longer be made: its time is over, or the clock of the database was set back by more than that time, so that it
 * would hold writes for as long.
 */
export const hasExpired = ({ expiresMs, forMs }: PendingChange, nowMs: number): boolean =>
  expiresMs <= nowMs || expiresMs - nowMs > 2 * forMs

/** What no MAC ever is. */
export const DAMAGED = 'damaged'

/** True where a MAC is the expected one. */
export function isMac(expected: string, found: unknown): boolean {
  if (typeof found !== 'string') return false
  const [one, other] = [Buffer.from(expected), Buffer.from(found)]
  return one.length === other.length && timingSafeEqual(one, other)
}

const macOfStage = (key: Uint8Array, { partner, content }: Omit<StageRow, 'mac'>): string =>
  macOf(key, 'stage', [partner, content])

/** The row of a stage, with its MAC. */
export function toStageRow(key: Uint8Array, kept: KeptStage): StageRow {
  const row = { partner: kept.state.partner, content: JSON.stringify(kept) }
  return { ...row, mac: macOfStage(key, row) }
}

/** Reads a row; undefined: it is not as it was written, or has a stage that this version does not know. */
export function fromStageRow(key: Uint8Array, row: StageRow): KeptStage | undefined {
  if (!isMac(macOfStage(key, row), row.mac)) return undefined
  // The MAC says that this program has written it.
  const kept = JSON.parse(row.content) as KeptStage
  return isSetting(kept.state) ? kept : undefined
}

/** The rows of stages, each with the number of the last row of the trail about its partner. */
export const stagesWithLast = sql<FoundStage>`select partner, content, mac, (select a.entry from rollout_audit a
  where a.partner = s.partner order by a.entry desc limit 1) as last from rollout_stages s`

export type FoundStage = StageRow & { readonly last: number | null }

/** Reads a stage; undefined: its row is not as it was written, or is an older one than the trail has. */
export function fromFoundStage({ key }: MacKey, { last, ...row }: FoundStage): KeptStage | undefined {
  const kept = fromStageRow(key, row)
  return kept !== undefined && kept.entry >= (last ?? 0) ? kept : undefined
}

/** All stages; undefined for a row that is not as it was written. */
export async function readStages(db: Db, macKey: MacKey): Promise<Map<string, KeptStage | undefined>> {
  const rows = await rowsOf(db, stagesWithLast)
  return new Map(rows.map((row) => [row.partner, fromFoundStage(macKey, row)]))
}

/** Reads the stage of a partner; `damaged`: its row is not as it was written, or is gone. */
export async function readStage(
  db: Db,
  macKey: MacKey,
  partner: string,
): Promise<KeptStage | 'damaged' | undefined> {
  const [row] = await rowsOf(db, sql<FoundStage>`${stagesWithLast} where partner = ${partner}`)
  if (row !== undefined) return fromFoundStage(macKey, row) ?? 'damaged'
  return (await readStagedPartners(db)).has(partner) ? 'damaged' : undefined
}

export async function writeStage(db: Db, { key }: MacKey, kept: KeptStage): Promise<void> {
  const { partner, content, mac } = toStageRow(key, kept)
  await sql`insert into rollout_stages (partner, content, mac) values (${partner}, ${content}, ${mac})
    on conflict (partner) do update set content = excluded.content, mac = excluded.mac`.execute(db)
}

/** Partners whose stage was changed once, by the audit trail. */
export async function readStagedPartners(db: Db): Promise<ReadonlySet<string>> {
  const rows = await rowsOf(db, sql<{ partner: string }>`select distinct partner from rollout_audit
    where action in ('set', 'back', 'guard', 'propose')`) // prettier-ignore
  return new Set(rows.map(({ partner }) => partner))
}

/** The time by the clock of the database. */
export async function readNow(database: JournalDatabase, db: Db): Promise<number> {
  const [row] = await rowsOf(db, sql<{ now: number }>`select ${database.nowMs()} as now`)
  return Number(row?.now)
}
