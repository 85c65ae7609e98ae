import { type RawBuilder, sql } from 'kysely'

import { isLive, type JournalDatabase, settledAmong } from '../../journal/index.ts'
import { parseStored, settingSchema, type StageSetting } from '../stage.ts'
import type { Head } from './audit-trail.ts'
import { expireChanges } from './changes.ts'
import {
  type FoundStage,
  hasExpired,
  latestEntries,
  type PartnerRollout,
  parseStage,
  readStage,
} from './stage-rows.ts'

export interface Acknowledgement {
  readonly partner: string
  /** The revision at which the instance serves the partner. 0 for the stage with which the partner began. */
  readonly revision: number
  /** The revision of the pending change for which the instance holds back writes, or `undefined` if there is none. */
  readonly pendingRevision: number | undefined
  /**
   * The numbers of writes in progress on the wrong side: on V2 although the current or the pending stage puts them on V3, and the reverse.
   * A change is committed once both numbers are 0 on every live instance.
   */
  readonly writesV2: number
  readonly writesV3: number
}

/** All stages at one moment. Times are by the clock of the database. */
export interface RolloutSnapshot {
  readonly nowMs: number
  /** The last entry of the audit trail, or `undefined` if the trail does not continue the known trail. */
  readonly trail: Head | undefined
  /** The stages of the partners. A partner without an entry begins with the stage of the configuration file. */
  readonly partners: ReadonlyMap<string, PartnerRollout>
  /** The settings with which partners began. For these partners the configuration file no longer counts. */
  readonly begins: ReadonlyMap<string, StageSetting>
  /** The requested partners that have no open or due record on V3. */
  readonly settled: ReadonlySet<string>
  /**
   * The instances with a live lease. A commit does not wait for any other instance, so an instance that is not listed must not rely on this
   * snapshot.
   */
  readonly liveInstances: readonly number[]
  readonly acknowledgements: readonly (Acknowledgement & { readonly instance: number })[]
}

/** Prefix of the rows of `rollout_evidence` that store the setting with which a partner began. */
export const BEGIN = 'begin '

/**
 * Reads all stages at one moment, and which partners of `left` have settled their V3 records. If a pending change has expired,
 * `expireChanges` first waits for a commit that may be in progress and ends the change, so that the snapshot lacks it.
 */
export async function readSnapshot(
  database: JournalDatabase,
  known: Head | undefined,
  left: readonly string[],
): Promise<RolloutSnapshot> {
  const { snapshot, expired } = await database.ask(() => readFound(database, known, left))
  if (expired.length === 0) return snapshot
  await expireChanges(database, expired)
  return (await database.ask(() => readFound(database, known, left))).snapshot
}

interface FoundRows {
  readonly now: { readonly now: number; readonly known: string | null }
  readonly head: Head
  readonly live: { readonly id: number }
  readonly stage: FoundStage
  readonly begin: { readonly name: string; readonly text: string }
  readonly acknowledgement: Omit<Acknowledgement, 'pendingRevision'> & {
    readonly instance: number
    readonly pendingRevision: number | null
  }
  readonly settled: { readonly partner: string }
}

/**
 * Reads the rows of all kinds in one statement. The statement sees one moment. It takes only one round trip, because after a pause of the
 * process writes wait for this read. The rows come as JSON, so that an impossible number in one row does not make the driver reject all
 * rows.
 */
async function readRows(
  database: JournalDatabase,
  known: Head | undefined,
  left: readonly string[],
): Promise<<Kind extends keyof FoundRows>(kind: Kind) => readonly FoundRows[Kind][]> {
  const { db, dialect } = database
  const build = sql.raw(dialect === 'sqlite' ? 'json_object' : 'json_build_object')
  const select = (kind: keyof FoundRows, from: RawBuilder<unknown>, ...columns: string[]) => {
    const members = columns.flatMap((name) => [sql.lit(name), sql.ref(name)])
    return sql`select ${sql.lit(kind)} as kind, cast(${build}(${sql.join(members)}) as text) as content from ${from}`
  }
  const now = sql`(select ${database.nowMs()} as now,
    (select hash from rollout_audit where entry = ${known?.entries ?? 0}) as known) as n`
  const head = sql`(select entry as entries, hash from rollout_audit order by entry desc limit 1) as h`
  const begins = sql`rollout_evidence where name like ${sql.lit(`${BEGIN}%`)}`
  const acks = sql`(select instance, partner, revision, pending_revision as "pendingRevision", writes_v2 as "writesV2",
    writes_v3 as "writesV3" from rollout_acks) as a`
  const all = [
    select('now', now, 'now', 'known'),
    select('head', head, 'entries', 'hash'),
    select('live', sql`journal_instances where ${isLive(database)}`, 'id'),
    select('stage', sql`(${latestEntries}) as s`, 'partner', 'content'),
    select('begin', begins, 'name', 'text'),
    select('acknowledgement', acks, 'instance', 'partner', 'revision', 'pendingRevision', 'writesV2', 'writesV3'),
    ...(left.length === 0 ? [] : [select('settled', sql`${settledAmong(left)} as s`, 'partner')]),
  ] // prettier-ignore
  const { rows } = await sql<{ readonly kind: string; readonly content: string }>`${sql.join(all, sql` union all `)}`.execute(db) // prettier-ignore
  return (kind) =>
    rows
      .filter((row) => row.kind === kind)
      .map(({ content }) => JSON.parse(content) as FoundRows[typeof kind])
}

/** Reads the snapshot without expired changes. Also returns the partners whose pending change has expired. */
async function readFound(
  database: JournalDatabase,
  known: Head | undefined,
  left: readonly string[],
): Promise<{ readonly snapshot: RolloutSnapshot; readonly expired: readonly string[] }> {
  const rows = await readRows(database, known, left)
  const [[now], [head = { entries: 0, hash: '' }]] = [rows('now'), rows('head')]
  const nowMs = now?.now ?? 0
  const isContinued = known === undefined || known.entries === 0 || now?.known === known.hash
  const liveInstances = rows('live').map(({ id }) => id)
  const partners = new Map<string, PartnerRollout>()
  const expired: string[] = []
  for (const row of rows('stage')) {
    const { partner } = row
    const kept = parseStage(row) ?? (await readStage(database.db, partner))
    if (kept === undefined) continue
    const { state, pending } = kept
    const isOver = pending !== undefined && hasExpired(pending, nowMs)
    if (isOver) expired.push(partner)
    // Returns no stage for revision 0, which marks a partner whose first change is still pending.
    partners.set(partner, {
      state: state.revision === 0 ? undefined : state,
      pending: isOver ? undefined : pending,
    })
  }
  const snapshot: RolloutSnapshot = {
    nowMs,
    trail: isContinued ? head : undefined,
    partners,
    begins: new Map(rows('begin').flatMap(toBegin)),
    settled: new Set(rows('settled').map(({ partner }) => partner)),
    liveInstances,
    acknowledgements: rows('acknowledgement')
      .filter(({ instance }) => liveInstances.includes(instance))
      .map((row) => ({ ...row, pendingRevision: row.pendingRevision ?? undefined })),
  }
  return { snapshot, expired }
}

/** Returns the partner and its setting, or an empty list if the row was altered. */
function toBegin({ name, text }: FoundRows['begin']): [string, StageSetting][] {
  const setting = parseStored(settingSchema, text)
  return setting === undefined ? [] : [[name.slice(BEGIN.length), setting]]
}
