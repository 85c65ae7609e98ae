import { type RawBuilder, sql } from 'kysely'

import { AdapterError } from '../../errors.ts'
import { isLive, type JournalDatabase, unsettledRows } from '../../journal/index.ts'
import { beginColumns, fromBeginCells, isBegin } from './begins.ts'
import { fits, type Head, isWhole, readStagedPartners } from './change-transaction.ts'
import { continues, toTrail } from './known-trail.ts'
import { markDamaged } from './mark-damaged.ts'
import type { KnownTrail, RolloutSnapshot } from './rollout-store.ts'
import { type Cell, fromStageCells, parseCells, stageColumns, toCells } from './row-cells.ts'
import { type KeptStage, toRollout } from './stage-row.ts'

/** All that is known at one moment. */
interface FoundStages extends Omit<RolloutSnapshot, 'partners'> {
  readonly stages: ReadonlyMap<string, KeptStage>
}

/**
 * Reads all stages at one moment. A change that has expired is still in its row, and a commit of it may be on its way: it is ended by
 * `expire`, which waits for that, and only then it is told to be gone.
 */
export async function readSnapshot(
  database: JournalDatabase,
  known: KnownTrail | undefined,
  expire: (partners: readonly string[]) => Promise<void>,
): Promise<RolloutSnapshot> {
  const found = await database.ask(() => readStages(database, known))
  const expired = [...found.stages.values()].filter(
    ({ pending }) => pending !== undefined && pending.expiresMs <= found.nowMs,
  )
  if (expired.length === 0) return toSnapshot(found)
  await expire(expired.map(({ state }) => state.partner)).catch((error: unknown) => {
    // Nothing is written behind a damaged end; a change that has expired is left out all the same.
    if (!(error instanceof AdapterError) || error.code !== 'ADP_JOURNAL_DAMAGED') throw error
  })
  return toSnapshot(await database.ask(() => readStages(database, known)))
}

function toSnapshot({ stages, ...rest }: FoundStages): RolloutSnapshot {
  const partners = new Map(
    [...stages].map(([partner, kept]) => {
      const hasExpired = kept.pending !== undefined && kept.pending.expiresMs <= rest.nowMs
      return [partner, toRollout(hasExpired ? { ...kept, pending: undefined } : kept)] as const
    }),
  )
  return { ...rest, partners }
}

/** One row of the statement: which table it is from, and its columns as a JSON array. */
interface FoundRow {
  readonly kind:
    'now' | 'last' | 'known' | 'head' | 'live' | 'stage' | 'begin' | 'acknowledgement' | 'unsettled'
  readonly content: string
}

/** One statement: it sees one moment, and takes one message. */
async function readStages(database: JournalDatabase, known: KnownTrail | undefined): Promise<FoundStages> {
  const { db, macKey } = database
  const select = (kind: FoundRow['kind'], columns: RawBuilder<unknown>): RawBuilder<unknown> =>
    sql`select ${sql.lit(kind)} as kind, ${toCells(database, columns)} as content`
  const { rows } = await sql<FoundRow>`
    ${select('now', database.nowMs())}
    union all ${select('last', sql`max(entry)`)} from rollout_audit
    union all ${select('known', sql`mac`)} from rollout_audit where entry = ${known?.entries ?? 0}
    union all ${select('head', sql`id, entries, last_mac, keyed_from, partners, repaired_ms, mac`)} from rollout_head
    union all ${select('live', sql`id`)} from journal_instances where ${isLive(database)}
    union all ${select('stage', stageColumns)}
      from rollout_stages
    union all ${select('begin', beginColumns)} from rollout_evidence where ${isBegin}
    union all ${select('acknowledgement', sql`instance, partner, revision, pending_revision, writes_v2, writes_v3`)} from rollout_acks
    union all ${select('unsettled', sql`u.partner, u.records`)} from (${unsettledRows(db)}) as u`.execute(db)
  const of = (kind: FoundRow['kind']): readonly (readonly Cell[])[] =>
    rows.filter((row) => row.kind === kind).map(({ content }) => parseCells(content))

  const stages = new Map<string, KeptStage>()
  const damaged = new Set<string>()
  for (const cells of of('stage')) {
    const kept = fromStageCells(macKey, cells)
    if (kept === undefined) damaged.add(String(cells[0]))
    else stages.set(kept.state.partner, kept)
  }
  const head = toHead(of('head')[0])
  const last = of('last')[0]?.[0]
  // Read only where a row may be missing: without its row the stage of the file would count.
  if (head === undefined || !fits(macKey, head) || head.partners !== stages.size + damaged.size) {
    for (const partner of await readStagedPartners(db)) if (!stages.has(partner)) damaged.add(partner)
  }
  const older = (known?.revisions ?? []).filter(
    ([partner, revision]) => !damaged.has(partner) && (stages.get(partner)?.state.revision ?? 0) < revision,
  )
  const trail = head && toTrail(macKey, head)
  const isSound =
    head !== undefined &&
    trail !== undefined &&
    isWhole(macKey, head, typeof last === 'number' ? last : undefined) &&
    (known === undefined || continues(known, trail, of('known')[0]?.[0]))
  if (!isSound || older.length > 0) {
    await markDamaged(database, {
      head: isSound ? undefined : head,
      stages: older.map(([partner]) => ({ partner, kept: stages.get(partner) })),
    })
    for (const [partner] of older) {
      stages.delete(partner)
      damaged.add(partner)
    }
  }
  const unsettled = new Map<string, number>()
  for (const [partner, records] of of('unsettled')) {
    unsettled.set(String(partner), (unsettled.get(String(partner)) ?? 0) + Number(records))
  }
  const liveInstances = of('live').map(([id]) => Number(id))
  return {
    nowMs: Number(of('now')[0]?.[0]),
    trail: isSound ? { ...trail, revisions: revisionsOf(stages, known) } : undefined,
    stages,
    begins: new Map(of('begin').flatMap(fromBeginCells)),
    damaged,
    unsettled,
    liveInstances,
    acknowledgements: of('acknowledgement').flatMap(toAcknowledgement(liveInstances)),
  }
}

const toAcknowledgement =
  (liveInstances: readonly number[]) =>
  ([
    instance,
    partner,
    revision,
    pendingRevision,
    writesV2,
    writesV3,
  ]: readonly Cell[]): RolloutSnapshot['acknowledgements'] =>
    liveInstances.includes(Number(instance))
      ? [
          {
            instance: Number(instance),
            partner: String(partner),
            revision: Number(revision),
            pendingRevision: typeof pendingRevision === 'number' ? pendingRevision : undefined,
            writesV2: Number(writesV2),
            writesV3: Number(writesV3),
          },
        ]
      : []

/** Those of all partners, also of one that is damaged now. */
function revisionsOf(
  stages: ReadonlyMap<string, KeptStage>,
  known: KnownTrail | undefined,
): KnownTrail['revisions'] {
  const own = [...stages].map(([partner, { state }]) => [partner, state.revision] as const)
  return [...new Map([...(known?.revisions ?? []), ...own])].filter(([, revision]) => revision > 0)
}

function toHead(cells: readonly Cell[] | undefined): Head | undefined {
  if (cells === undefined) return undefined
  const [id, entries, lastMac, keyedFrom, partners, repairedMs, mac] = cells
  return {
    id: Number(id),
    entries: Number(entries),
    last_mac: String(lastMac),
    keyed_from: typeof keyedFrom === 'number' ? keyedFrom : null,
    partners: Number(partners),
    repaired_ms: typeof repairedMs === 'number' ? repairedMs : null,
    mac: String(mac),
  }
}
