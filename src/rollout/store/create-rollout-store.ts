import { sql } from 'kysely'

import {
  type DatabaseOptions,
  type JournalDatabase,
  openJournalDatabase,
  ownIdentity,
  readLostInstances,
} from '../../journal/index.ts'
import { createEvidenceStore, type EvidenceStore } from '../evidence/evidence-store.ts'
import { formatSetting, type StageSetting } from '../stage.ts'
import { adoptKey, readHistory, readMac, verifyTrail } from './audit-trail.ts'
import { createStageChanges, expireChanges, readUnrecorded } from './changes.ts'
import { BEGIN, readSnapshot } from './read-snapshot.ts'
import type { Acknowledgement, KnownTrail, RolloutStore } from './rollout-store.ts'
import type { Db } from './stage-rows.ts'

/** Creates the store of stages in the database of a journal, which may be opened later. */
export function createRolloutStore(database: JournalDatabase): RolloutStore {
  let isAdopted = false
  /** The MACs are those of the journal's keys from then on. */
  const ready = async (): Promise<void> => {
    if (!isAdopted) await adoptKey(database)
    isAdopted = true
  }
  const ask = <Result>(question: (db: Db) => Promise<Result>): Promise<Result> =>
    database.ask(() => question(database.db))
  return {
    ...createStageChanges(database, ready),
    snapshot: async (known) => {
      await ready()
      return readSnapshot(database, known, (partners) => expireChanges(database, partners))
    },
    verify: async (known) => {
      await ready()
      return verifyTrail(database, known)
    },
    lost: () => ask((db) => readLostInstances(db, database, ownIdentity())),
    acknowledge: (instance, rows) => ask((db) => acknowledge(db, instance, rows)),
    leave: (instance) =>
      ask(async (db) => {
        await db.deleteFrom('rollout_acks').where('instance', '=', instance).execute()
      }),
    begin: (partner, setting) => ask((db) => keepBegin(database, db, partner, setting)),
    noteUnrecorded: (partner, agoMs) => ask((db) => noteUnrecorded(database, db, partner, agoMs)),
    unrecorded: (partner) => ask((db) => readUnrecorded(database, db, partner)),
    history: (filter) => ask((db) => readHistory(db, filter)),
    macOf: (entry) => ask((db) => readMac(db, entry)),
    readText: (name) => ask((db) => readText(db, name)),
    updateText: (name, update) => ask((db) => updateText(database, db, name, update)),
  }
}

/** A store that was opened by itself. */
export interface OpenedRolloutStore extends RolloutStore {
  /** What comparison has seen, in the same database. */
  readonly evidence: EvidenceStore
  close(): Promise<void>
}

/**
 * Opens the store of a journal that is there, also while it is served. Its trail has to go on from `known`. Errors: those of
 * `openJournalDatabase`.
 */
export async function openRolloutStore(
  options: DatabaseOptions,
  known?: KnownTrail,
): Promise<OpenedRolloutStore> {
  const database = await openJournalDatabase(options)
  const store = createRolloutStore(database)
  return {
    ...store,
    snapshot: () => store.snapshot(known),
    verify: () => store.verify(known),
    evidence: createEvidenceStore(database),
    close: () => database.close(),
  }
}

async function acknowledge(db: Db, instance: number, rows: readonly Acknowledgement[]): Promise<void> {
  if (rows.length === 0) return
  await db.transaction().execute(async (transaction) => {
    // Numbers never come again: what instances said that are gone is of no use.
    await transaction
      .deleteFrom('rollout_acks')
      .where('instance', 'not in', (eb) =>
        eb.selectFrom('journal_instances').select('id').where('lost', '=', 0),
      )
      .execute()
    for (const row of [...rows].sort((one, other) => (one.partner < other.partner ? -1 : 1))) {
      const content = {
        revision: row.revision,
        pending_revision: row.pendingRevision ?? null,
        writes_v2: row.writesV2,
        writes_v3: row.writesV3,
      }
      await transaction
        .insertInto('rollout_acks')
        .values({ instance, partner: row.partner, ...content })
        .onConflict((conflict) => conflict.columns(['instance', 'partner']).doUpdateSet(content))
        .execute()
    }
  })
}

/** Keeps where a partner begins, unless that is known already. */
function keepBegin(database: JournalDatabase, db: Db, partner: string, setting: StageSetting): Promise<void> {
  return db.transaction().execute(async (transaction) => {
    const { numInsertedOrUpdatedRows: kept } = await transaction
      .insertInto('rollout_evidence')
      .values({ name: `${BEGIN}${partner}`, text: formatSetting(setting) })
      .onConflict((conflict) => conflict.column('name').doNothing())
      .executeTakeFirst()
    if (kept === 1n) await noteUnrecorded(database, transaction, partner, 0)
  })
}

/** Keeps the time of the last batch that was relayed without a record. */
async function noteUnrecorded(
  { nowMs }: Pick<JournalDatabase, 'nowMs'>,
  db: Db,
  partner: string,
  agoMs: number,
): Promise<void> {
  const at = sql<number>`${nowMs()} - ${sql.lit(Math.max(0, Math.floor(agoMs)))}`
  await db
    .insertInto('rollout_unrecorded')
    .values({ partner, at_ms: at })
    .onConflict((conflict) =>
      conflict
        .column('partner')
        .doUpdateSet({ at_ms: sql`excluded.at_ms` })
        .where(sql<boolean>`excluded.at_ms > rollout_unrecorded.at_ms`),
    )
    .execute()
}

async function readText(db: Db, name: string): Promise<string | undefined> {
  const row = await db
    .selectFrom('rollout_evidence')
    .select('text')
    .where('name', '=', name)
    .executeTakeFirst()
  return row?.text
}

function updateText(
  { dialect }: Pick<JournalDatabase, 'dialect'>,
  db: Db,
  name: string,
  update: (text: string | undefined) => string,
): Promise<string> {
  return db.transaction().execute(async (transaction) => {
    // An empty row stands for none: it can be locked.
    await transaction
      .insertInto('rollout_evidence')
      .values({ name, text: '' })
      .onConflict((conflict) => conflict.column('name').doNothing())
      .execute()
    const { text: before } = await transaction
      .selectFrom('rollout_evidence')
      .select('text')
      .where('name', '=', name)
      .$if(dialect === 'postgres', (query) => query.forUpdate())
      .executeTakeFirstOrThrow()
    const text = update(before === '' ? undefined : before)
    await transaction.updateTable('rollout_evidence').set({ text }).where('name', '=', name).execute()
    return text
  })
}
