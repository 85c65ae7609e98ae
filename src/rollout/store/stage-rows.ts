import { timingSafeEqual } from 'node:crypto'

import { type Kysely, type RawBuilder, sql } from 'kysely'

import { type JournalDatabase, type JournalTables, macOf } from '../../journal/index.ts'
import { isSetting, type StageSetting } from '../stage.ts'

export type Db = Kysely<JournalTables>
export type MacKey = Pick<JournalDatabase['macKey'], 'key' | 'keyed'>

export const rowsOf = async <Row>(db: Db, statement: RawBuilder<Row>): Promise<readonly Row[]> =>
  (await statement.execute(db)).rows

/** Returns the clause that locks rows. SQLite needs none, because it has only one writer at a time. */
export const forUpdate = ({ dialect }: Pick<JournalDatabase, 'dialect'>): RawBuilder<unknown> =>
  dialect === 'postgres' ? sql`for update` : sql``

export interface StageRow {
  readonly partner: string
  /** A `KeptStage` as JSON. */
  readonly content: string
  readonly mac: string
}

export interface StageState extends StageSetting {
  readonly partner: string
  /** Grows with every change. A withdrawn change leaves a gap. */
  readonly revision: number
  /** Since when the partner is at this stage, whatever the percentage and the lists. */
  readonly sinceMs: number
  readonly by: string
  readonly reason: string
}

export interface PendingChange extends StageSetting {
  readonly from: StageSetting
  /** The revision of the change. No other change ever gets it, so an acknowledgement of it is never mistaken for another. */
  readonly revision: number
  readonly by: string
  readonly reason: string
  /** The time of expiry by the clock of the database. */
  readonly expiresMs: number
  /** The time that the change had left when it was stored. */
  readonly forMs: number
  /** True if the change waits for another operator. Instances ignore it until then. */
  readonly needsApproval: boolean
  readonly quietMs: number
}

export interface PartnerRollout {
  /** `undefined` until the first commit. The stage with which the partner began then counts. */
  readonly state: StageState | undefined
  /** `undefined` if there is no change that can still be committed. */
  readonly pending: PendingChange | undefined
}

export interface KeptStage {
  readonly state: StageState
  readonly lastRevision: number
  readonly pending: PendingChange | undefined
  /** The number of the last row of the trail about the partner. */
  readonly entry: number
}

/**
 * Returns true if a change can no longer be made: its time is over, or the database clock was set back by more than that time, so that the
 * change would hold writes for as long.
 */
export const hasExpired = ({ expiresMs, forMs }: PendingChange, nowMs: number): boolean =>
  expiresMs <= nowMs || expiresMs - nowMs > 2 * forMs

/** A value that no MAC ever has. */
export const DAMAGED = 'damaged'

export function isMac(expected: string, found: unknown): boolean {
  if (typeof found !== 'string') return false
  const [one, other] = [Buffer.from(expected), Buffer.from(found)]
  return one.length === other.length && timingSafeEqual(one, other)
}

const macOfStage = (key: Uint8Array, { partner, content }: Omit<StageRow, 'mac'>): string =>
  macOf(key, 'stage', [partner, content])

export function toStageRow(key: Uint8Array, kept: KeptStage): StageRow {
  const row = { partner: kept.state.partner, content: JSON.stringify(kept) }
  return { ...row, mac: macOfStage(key, row) }
}

/** Returns `undefined` if the row was altered or has a stage that this version does not know. */
export function fromStageRow(key: Uint8Array, row: StageRow): KeptStage | undefined {
  if (!isMac(macOfStage(key, row), row.mac)) return undefined
  // The MAC proves that this program wrote the content.
  const kept = JSON.parse(row.content) as KeptStage
  return isSetting(kept.state) ? kept : undefined
}

/** Selects the rows of stages, each with the number of the last row of the trail about its partner. */
export const stagesWithLast = sql<FoundStage>`select partner, content, mac, (select a.entry from rollout_audit a
  where a.partner = s.partner order by a.entry desc limit 1) as last from rollout_stages s`

export type FoundStage = StageRow & { readonly last: number | null }

/** Returns `undefined` if the row was altered or is older than the trail. */
export function fromFoundStage({ key }: MacKey, { last, ...row }: FoundStage): KeptStage | undefined {
  const kept = fromStageRow(key, row)
  return kept !== undefined && kept.entry >= (last ?? 0) ? kept : undefined
}

/** Reads all stages. The value is `undefined` for a row that was altered. */
export async function readStages(db: Db, macKey: MacKey): Promise<Map<string, KeptStage | undefined>> {
  const rows = await rowsOf(db, stagesWithLast)
  return new Map(rows.map((row) => [row.partner, fromFoundStage(macKey, row)]))
}

/** Returns `damaged` if the row was altered or lost. */
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

export async function readStagedPartners(db: Db): Promise<ReadonlySet<string>> {
  const rows = await rowsOf(db, sql<{ partner: string }>`select distinct partner from rollout_audit
    where action in ('set', 'back', 'guard', 'propose')`) // prettier-ignore
  return new Set(rows.map(({ partner }) => partner))
}

export async function readNow(database: JournalDatabase, db: Db): Promise<number> {
  const [row] = await rowsOf(db, sql<{ now: number }>`select ${database.nowMs()} as now`)
  return Number(row?.now)
}
