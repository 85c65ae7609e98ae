import { createHmac, timingSafeEqual } from 'node:crypto'

import { type Kysely, type RawBuilder, sql } from 'kysely'

import type { JournalDatabase, JournalTables } from '../../journal/index.ts'
import { formatSetting, parseSetting, type StageSetting, toSetting } from '../stage.ts'
import type { PartnerRollout, PendingChange, StageState } from './rollout-store.ts'

export type Db = Kysely<JournalTables>
export type MacKey = Pick<JournalDatabase['macKey'], 'key' | 'keyed'>
type StageRow = JournalTables['rollout_stages']

/** A pending change as it is kept. */
export interface KeptChange extends PendingChange {
  readonly from: StageSetting
  readonly quietMs: number
}

/** A row that is as it was written. */
export interface KeptStage {
  readonly state: StageState
  readonly lastRevision: number
  readonly pending: KeptChange | undefined
  /** The last row of the trail about the partner. */
  readonly entry: number
}

/** What no MAC ever is. */
export const DAMAGED = 'damaged'

/** The MAC of values in their order; `kind` keeps those of different tables apart. */
export function macOf(key: Uint8Array, kind: string, values: readonly (string | number | null)[]): string {
  return createHmac('sha256', key)
    .update(JSON.stringify([kind, ...values]))
    .digest('hex')
}

/** True where a MAC is the expected one. */
export function isMac(expected: string, found: unknown): boolean {
  if (typeof found !== 'string') return false
  const [one, other] = [Buffer.from(expected), Buffer.from(found)]
  return one.length === other.length && timingSafeEqual(one, other)
}

const columns = [
  'partner',
  'revision',
  'last_revision',
  'setting',
  'since_ms',
  'operator',
  'reason',
  'pending',
  'entry',
] as const

const macOfStage = (key: Uint8Array, row: Omit<StageRow, 'mac'>): string =>
  macOf(
    key,
    'stage',
    columns.map((column) => row[column]),
  )

/** The row of a stage, with its MAC. */
export function toStageRow(key: Uint8Array, { state, lastRevision, pending, entry }: KeptStage): StageRow {
  const row = {
    partner: state.partner,
    revision: state.revision,
    last_revision: lastRevision,
    setting: formatSetting(state),
    since_ms: state.sinceMs,
    operator: state.by,
    reason: state.reason,
    pending: pending === undefined ? null : JSON.stringify(pending),
    entry,
  }
  return { ...row, mac: macOfStage(key, row) }
}

/** Reads a row; undefined: it is not as it was written. */
export function fromStageRow(key: Uint8Array, row: StageRow): KeptStage | undefined {
  const { partner, revision } = row
  if (!isMac(macOfStage(key, row), row.mac)) return undefined
  const setting = parseSetting(row.setting)
  if (setting === undefined) return undefined
  return {
    state: { partner, revision, ...setting, sinceMs: row.since_ms, by: row.operator, reason: row.reason },
    lastRevision: row.last_revision,
    // The MAC says that this program has written it.
    pending: row.pending === null ? undefined : (JSON.parse(row.pending) as KeptChange),
    entry: row.entry,
  }
}

/** What others see of a stage. */
export function toRollout({ state, pending }: KeptStage): PartnerRollout {
  return {
    // The row of a partner whose first change is pending still.
    state: state.revision === 0 ? undefined : state,
    pending: pending === undefined ? undefined : toPending(pending),
  }
}

export function toPending(kept: KeptChange): PendingChange {
  const { revision, by, reason, expiresMs, needsApproval } = kept
  return { ...toSetting(kept), revision, by, reason, expiresMs, needsApproval }
}

/**
 * The named columns as one JSON object, as text. A number that no row ever has is read as another one, where the driver would refuse the whole
 * statement: the MAC of its row tells that it is wrong.
 */
export function toJson(
  { dialect }: Pick<JournalDatabase, 'dialect'>,
  columns: Readonly<Record<string, RawBuilder<unknown>>>,
): RawBuilder<string> {
  const members = Object.entries(columns).flatMap(([name, value]) => [sql.lit(name), value])
  const build = sql.raw(dialect === 'sqlite' ? 'json_object' : 'json_build_object')
  return sql<string>`cast(${build}(${sql.join(members)}) as text)`
}

/** Columns by their own names, for `toJson`. */
export const columnsOf = (...names: readonly string[]): Record<string, RawBuilder<unknown>> =>
  Object.fromEntries(names.map((name) => [name, sql.ref(name)]))

/** The columns of a row of `rollout_stages`, with the number of the last row of the trail about its partner; for `fromFoundStage`. */
export const stageColumns = {
  ...columnsOf(...columns, 'mac'),
  last: sql`(select a.entry from rollout_audit as a where a.partner = rollout_stages.partner and a.action <> 'hold' order by a.entry desc limit 1)`,
}

export interface FoundStage extends StageRow {
  readonly last: number | null
}

/** Reads a stage; undefined: its row is not as it was written, or is an older one than the trail has. */
export function fromFoundStage({ key }: MacKey, { last, ...row }: FoundStage): KeptStage | undefined {
  const kept = fromStageRow(key, row)
  return kept !== undefined && kept.entry >= (last ?? 0) ? kept : undefined
}

/** All stages; undefined for a row that is not as it was written. */
export async function readStages(
  database: JournalDatabase,
  db: Db,
): Promise<Map<string, KeptStage | undefined>> {
  const rows = await db
    .selectFrom('rollout_stages')
    .select(['partner', toJson(database, stageColumns).as('content')])
    .execute()
  return new Map(
    rows.map(({ partner, content }) => [
      partner,
      fromFoundStage(database.macKey, JSON.parse(content) as FoundStage),
    ]),
  )
}

/** Reads the stage of a partner; `damaged`: its row is not as it was written, or is gone. */
export async function readStage(
  database: JournalDatabase,
  db: Db,
  partner: string,
): Promise<KeptStage | 'damaged' | undefined> {
  const row = await db
    .selectFrom('rollout_stages')
    .select(toJson(database, stageColumns).as('content'))
    .where('partner', '=', partner)
    .executeTakeFirst()
  if (row !== undefined)
    return fromFoundStage(database.macKey, JSON.parse(row.content) as FoundStage) ?? 'damaged'
  return (await readStagedPartners(db)).has(partner) ? 'damaged' : undefined
}

export async function writeStage(db: Db, { key }: MacKey, kept: KeptStage): Promise<void> {
  const { partner, ...row } = toStageRow(key, kept)
  await db
    .insertInto('rollout_stages')
    .values({ partner, ...row })
    .onConflict((conflict) => conflict.column('partner').doUpdateSet(row))
    .execute()
}

export async function countStages(db: Db): Promise<number> {
  const { n } = await db
    .selectFrom('rollout_stages')
    .select(({ fn }) => fn.countAll<number | string>().as('n'))
    .executeTakeFirstOrThrow()
  return Number(n)
}

/** Partners whose stage was changed once, by the audit trail. */
export async function readStagedPartners(db: Db): Promise<ReadonlySet<string>> {
  const rows = await db
    .selectFrom('rollout_audit')
    .select('partner')
    .distinct()
    .where('action', 'in', ['set', 'back', 'guard', 'propose'])
    .execute()
  return new Set(rows.map(({ partner }) => partner))
}

/** The time by the clock of the database. */
export async function readNow(database: JournalDatabase, db: Db): Promise<number> {
  const { rows } = await sql<{ now: number }>`select ${database.nowMs()} as now`.execute(db)
  return Number(rows[0]?.now)
}
