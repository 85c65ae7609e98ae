import { AdapterError } from '../../errors.ts'
import {
  type JournalDatabase,
  type JournalTables,
  readLiveInstances,
  readUnsettled,
} from '../../journal/index.ts'
import { parseSetting, type StageSetting } from '../stage.ts'
import { continues, fits, type Head, isWhole, readLast, readMac, toTrail } from './audit-trail.ts'
import type { KnownTrail, RolloutSnapshot } from './rollout-store.ts'
import {
  DAMAGED,
  type KeptStage,
  readNow,
  readStagedPartners,
  readStages,
  toRollout,
  toStageRow,
} from './stage-rows.ts'

/** In `rollout_evidence`, in front of the name of a partner: the setting with which it began. */
export const BEGIN = 'begin '

/**
 * Reads all stages at one moment. A change that has expired is still in its row, and a commit of it may be on its way: it is ended by
 * `expire`, which waits for that, and only then it is left out.
 */
export async function readSnapshot(
  database: JournalDatabase,
  known: KnownTrail | undefined,
  expire: (partners: readonly string[]) => Promise<void>,
): Promise<RolloutSnapshot> {
  const { snapshot, expired } = await database.ask(() => readFound(database, known))
  if (expired.length === 0) return snapshot
  await expire(expired).catch((error: unknown) => {
    // Nothing is written behind a damaged end; a change that has expired is left out all the same.
    if (!(error instanceof AdapterError) || error.code !== 'ADP_JOURNAL_DAMAGED') throw error
  })
  return (await database.ask(() => readFound(database, known))).snapshot
}

/** Reads what all tables hold at one moment. */
function readTables(database: JournalDatabase, known: KnownTrail | undefined) {
  const { db, macKey } = database
  const reading = db.transaction().setIsolationLevel('repeatable read').setAccessMode('read only')
  return reading.execute(async (at) => {
    const head = await at.selectFrom('rollout_head').selectAll().executeTakeFirst()
    const stages = await readStages(at, macKey)
    // Read only where a row may be missing: without its row the stage of the file would count.
    const isComplete = head !== undefined && fits(macKey, head) && head.partners === stages.size
    const begins = at.selectFrom('rollout_evidence').selectAll().where('name', 'like', `${BEGIN}%`)
    return {
      nowMs: await readNow(database, at),
      head,
      last: (await readLast(at))?.entry,
      knownMac: known && (await readMac(at, known.entries)),
      stages,
      missing: isComplete ? [] : [...(await readStagedPartners(at))].filter((one) => !stages.has(one)),
      begins: await begins.execute(),
      acknowledgements: await at.selectFrom('rollout_acks').selectAll().execute(),
      liveInstances: (await readLiveInstances(at, database)).map(({ instance }) => instance),
      unsettled: await readUnsettled(at),
    }
  })
}

/** Reads the snapshot without the changes that have expired, and the partners of these. */
async function readFound(
  database: JournalDatabase,
  known: KnownTrail | undefined,
): Promise<{ readonly snapshot: RolloutSnapshot; readonly expired: readonly string[] }> {
  const { macKey } = database
  const { nowMs, head, liveInstances, ...found } = await readTables(database, known)
  const stages = new Map<string, KeptStage>()
  const damaged = new Set(found.missing)
  for (const [partner, kept] of found.stages) {
    if (kept === undefined) damaged.add(partner)
    else stages.set(partner, kept)
  }
  const older = (known?.revisions ?? []).filter(
    ([partner, revision]) => !damaged.has(partner) && (stages.get(partner)?.state.revision ?? 0) < revision,
  )
  const trail = head && toTrail(macKey, head)
  const isSound =
    head !== undefined &&
    trail !== undefined &&
    isWhole(macKey, head, found.last) &&
    (known === undefined || continues(known, trail, found.knownMac))
  if (!isSound && head !== undefined) await markHead(database, head)
  for (const [partner] of older) {
    await markStage(database, partner, stages.get(partner))
    stages.delete(partner)
    damaged.add(partner)
  }
  const revisions = new Map(known?.revisions)
  for (const [partner, { state }] of stages) if (state.revision > 0) revisions.set(partner, state.revision)
  const expired = new Set<string>()
  for (const [partner, { pending }] of stages)
    if (pending !== undefined && pending.expiresMs <= nowMs) expired.add(partner)
  const partners = [...stages].map(([partner, kept]) => {
    const rollout = toRollout(kept)
    return [partner, expired.has(partner) ? { ...rollout, pending: undefined } : rollout] as const
  })
  const snapshot: RolloutSnapshot = {
    nowMs,
    // The revisions of all partners, also of one that is damaged now.
    trail: isSound ? { ...trail, revisions: [...revisions] } : undefined,
    partners: new Map(partners),
    begins: new Map(found.begins.flatMap(toBegin)),
    damaged,
    unsettled: found.unsettled,
    liveInstances,
    acknowledgements: found.acknowledgements
      .filter(({ instance }) => liveInstances.includes(instance))
      .map((row) => ({
        instance: row.instance,
        partner: row.partner,
        revision: row.revision,
        pendingRevision: row.pending_revision ?? undefined,
        writesV2: row.writes_v2,
        writesV3: row.writes_v3,
      })),
  }
  return { snapshot, expired: [...expired] }
}

/** None where the row is not as it was written. */
function toBegin({ name, text }: JournalTables['rollout_evidence']): [string, StageSetting][] {
  const setting = parseSetting(text)
  return setting === undefined ? [] : [[name.slice(BEGIN.length), setting]]
}

/**
 * Marks an end of the trail that cannot be, so that all others see what this instance alone knows. Nothing that was written since it has
 * read it is marked. Without keys everybody can write an end that fits, so nothing is gained by it.
 */
async function markHead({ db, macKey }: JournalDatabase, { mac }: Head): Promise<void> {
  if (!macKey.keyed || mac === DAMAGED) return
  await macKey.restore(db)
  await db.updateTable('rollout_head').set({ mac: DAMAGED }).where('mac', '=', mac).execute()
}

/** As `markHead`, for a stage that is older than it was, or is gone. */
async function markStage(
  { db, macKey }: JournalDatabase,
  partner: string,
  kept: KeptStage | undefined,
): Promise<void> {
  if (!macKey.keyed) return
  if (kept === undefined)
    await db
      .insertInto('rollout_stages')
      .values({ partner, content: '', mac: DAMAGED })
      .onConflict((conflict) => conflict.column('partner').doNothing())
      .execute()
  else
    await db
      .updateTable('rollout_stages')
      .set({ mac: DAMAGED })
      .where('partner', '=', partner)
      .where('mac', '=', toStageRow(macKey.key, kept).mac)
      .execute()
}
