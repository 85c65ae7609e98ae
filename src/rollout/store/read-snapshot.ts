import { type RawBuilder, sql } from 'kysely'

import { AdapterError } from '../../errors.ts'
import { isLive, type JournalDatabase, settledAmong } from '../../journal/index.ts'
import { parseStored, settingSchema, type StageSetting } from '../stage.ts'
import { continues, isHeadSound, type Head, isWhole, type KnownTrail, toTrail } from './audit-trail.ts'
import {
  DAMAGED,
  type FoundStage,
  fromFoundStage,
  hasExpired,
  type KeptStage,
  type PartnerRollout,
  readStagedPartners,
  stagesWithLast,
  toStageRow,
} from './stage-rows.ts'

export interface Acknowledgement {
  readonly partner: string
  /** 0 for the stage with which the partner began. */
  readonly revision: number
  /** The pending change for which the instance holds writes. */
  readonly pendingRevision: number | undefined
  /**
   * Writes under way on V2 that the current or the pending stage puts on V3, and the other way round. A change is committed once both
   * numbers are 0 on every live instance.
   */
  readonly writesV2: number
  readonly writesV3: number
}

/** All stages at one moment. Times are by the clock of the database. */
export interface RolloutSnapshot {
  readonly nowMs: number
  /** `undefined` if the audit trail is damaged. No stage moves forward then, and a partner without a row has no stage. */
  readonly trail: KnownTrail | undefined
  /** A partner that is missing here begins with the stage of the configuration file. */
  readonly partners: ReadonlyMap<string, PartnerRollout>
  /** The settings with which partners began. The configuration file no longer counts for these partners. */
  readonly begins: ReadonlyMap<string, StageSetting>
  /** Partners whose row was altered or lost. Their stage is unknown, and the configuration file does not count. */
  readonly damaged: ReadonlySet<string>
  /** The requested partners that have no V3 record that is open or due. */
  readonly settled: ReadonlySet<string>
  /** The instances with a live lease. A commit does not wait for other instances, so these cannot rely on this snapshot. */
  readonly liveInstances: readonly number[]
  readonly acknowledgements: readonly (Acknowledgement & { readonly instance: number })[]
}

/** Prefix of the rows in `rollout_evidence` that hold the setting with which a partner began. */
export const BEGIN = 'begin '

/**
 * Reads all stages at one moment, and which partners of `left` have settled their V3 records. A commit of an expired change may be in
 * progress. `expire` waits for it and ends the change, which is then left out.
 */
export async function readSnapshot(
  database: JournalDatabase,
  known: KnownTrail | undefined,
  left: readonly string[],
  expire: (partners: readonly string[]) => Promise<void>,
): Promise<RolloutSnapshot> {
  const { snapshot, expired } = await database.ask(() => readFound(database, known, left))
  if (expired.length === 0) return snapshot
  await expire(expired).catch((error: unknown) => {
    // A damaged end of the trail takes no more rows. The expired change is left out anyway.
    if (!(error instanceof AdapterError) || error.code !== 'ADP_JOURNAL_DAMAGED') throw error
  })
  return (await database.ask(() => readFound(database, known, left))).snapshot
}

interface FoundRows {
  readonly now: { readonly now: number; readonly last: number | null; readonly known: string | null }
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
 * Reads the rows of all kinds in one statement, which sees one moment and takes one round trip, because writes wait for it after a pause.
 * The rows come as JSON, so that an impossible number in one row does not make the driver reject all of them.
 */
async function readRows(
  database: JournalDatabase,
  known: KnownTrail | undefined,
  left: readonly string[],
): Promise<<Kind extends keyof FoundRows>(kind: Kind) => readonly FoundRows[Kind][]> {
  const { db, dialect } = database
  const build = sql.raw(dialect === 'sqlite' ? 'json_object' : 'json_build_object')
  const select = (kind: keyof FoundRows, from: RawBuilder<unknown>, ...columns: string[]) => {
    const members = columns.flatMap((name) => [sql.lit(name), sql.ref(name)])
    return sql`select ${sql.lit(kind)} as kind, cast(${build}(${sql.join(members)}) as text) as content from ${from}`
  }
  const now = sql`(select ${database.nowMs()} as now, (select max(entry) from rollout_audit) as last,
    (select mac from rollout_audit where entry = ${known?.entries ?? 0}) as known) as n`
  const begins = sql`rollout_evidence where name like ${sql.lit(`${BEGIN}%`)}`
  const acks = sql`(select instance, partner, revision, pending_revision as "pendingRevision", writes_v2 as "writesV2",
    writes_v3 as "writesV3" from rollout_acks) as a`
  const all = [
    select('now', now, 'now', 'last', 'known'),
    select('head', sql`rollout_head`, 'entries', 'last_mac', 'keyed_from', 'partners', 'repaired_ms', 'mac'),
    select('live', sql`journal_instances where ${isLive(database)}`, 'id'),
    select('stage', sql`(${stagesWithLast}) as s`, 'partner', 'content', 'mac', 'last'),
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

/** Reads the snapshot without expired changes, and the partners of these changes. */
async function readFound(
  database: JournalDatabase,
  known: KnownTrail | undefined,
  left: readonly string[],
): Promise<{ readonly snapshot: RolloutSnapshot; readonly expired: readonly string[] }> {
  const { db, macKey } = database
  const rows = await readRows(database, known, left)
  const [[now], [head]] = [rows('now'), rows('head')]
  const nowMs = now?.now ?? 0
  const stages = new Map<string, KeptStage>()
  const damaged = new Set<string>()
  for (const row of rows('stage')) {
    const kept = fromFoundStage(macKey, row)
    if (kept === undefined) damaged.add(row.partner)
    else stages.set(row.partner, kept)
  }
  // Read only if a row may be missing. Without its row a partner would get the stage of the configuration file.
  if (head === undefined || !isHeadSound(macKey, head) || head.partners !== stages.size + damaged.size)
    for (const partner of await readStagedPartners(db)) if (!stages.has(partner)) damaged.add(partner)
  const older = (known?.revisions ?? []).filter(
    ([partner, revision]) => !damaged.has(partner) && (stages.get(partner)?.state.revision ?? 0) < revision,
  )
  const trail = head && toTrail(macKey, head)
  const isSound =
    head !== undefined &&
    trail !== undefined &&
    isWhole(macKey, head, now?.last ?? undefined) &&
    (known === undefined || continues(known, trail, now?.known))
  // Also if the trail is known to have had a key that is gone now.
  const marks = macKey.keyed || (known !== undefined && known.keyName !== '')
  if (marks && !isSound && head !== undefined) await markHead(database, head)
  for (const [partner] of older) {
    if (marks) await markStage(database, partner, stages.get(partner))
    stages.delete(partner)
    damaged.add(partner)
  }
  const liveInstances = rows('live').map(({ id }) => id)
  const revisions = new Map(known?.revisions)
  for (const [partner, { state }] of stages) if (state.revision > 0) revisions.set(partner, state.revision)
  const partners = new Map<string, PartnerRollout>()
  const expired: string[] = []
  for (const [partner, { state, pending }] of stages) {
    const isOver = pending !== undefined && hasExpired(pending, nowMs)
    if (isOver) expired.push(partner)
    // Revision 0 marks a partner whose first change is still pending.
    partners.set(partner, {
      state: state.revision === 0 ? undefined : state,
      pending: isOver ? undefined : pending,
    })
  }
  const snapshot: RolloutSnapshot = {
    nowMs,
    // The revisions of all partners, including partners that are damaged now.
    trail: isSound ? { ...trail, revisions: [...revisions] } : undefined,
    partners,
    begins: new Map(rows('begin').flatMap(toBegin)),
    damaged,
    settled: new Set(rows('settled').map(({ partner }) => partner)),
    liveInstances,
    acknowledgements: rows('acknowledgement')
      .filter(({ instance }) => liveInstances.includes(instance))
      .map((row) => ({ ...row, pendingRevision: row.pendingRevision ?? undefined })),
  }
  return { snapshot, expired }
}

/** Returns nothing if the row was altered. */
function toBegin({ name, text }: FoundRows['begin']): [string, StageSetting][] {
  const setting = parseStored(settingSchema, text)
  return setting === undefined ? [] : [[name.slice(BEGIN.length), setting]]
}

/**
 * Marks an impossible end of the trail as damaged, so that others see what only this instance knows. Does not mark an end that was written
 * since. Without a key there is nothing to gain: anyone can write an end that fits.
 */
async function markHead({ db, macKey }: JournalDatabase, { mac }: Head): Promise<void> {
  if (mac === DAMAGED) return
  await macKey.restore(db)
  await sql`update rollout_head set mac = ${DAMAGED} where mac = ${mac}`.execute(db)
}

/** Marks a stage that is older than it was, or is gone, in the same way. */
async function markStage(
  { db, macKey }: JournalDatabase,
  partner: string,
  kept: KeptStage | undefined,
): Promise<void> {
  await (
    kept === undefined
      ? sql`insert into rollout_stages (partner, content, mac) values (${partner}, '', ${DAMAGED}) on conflict (partner) do nothing`
      : sql`update rollout_stages set mac = ${DAMAGED} where partner = ${partner} and mac = ${toStageRow(macKey.key, kept).mac}`
  ).execute(db)
}
