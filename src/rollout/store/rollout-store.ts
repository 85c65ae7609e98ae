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
import {
  adoptKey,
  type HistoryFilter,
  type KnownTrail,
  readHistory,
  readMac,
  type Verified,
  verifyTrail,
} from './audit-trail.ts'
import { createStageChanges, expireChanges, readUnrecorded } from './changes.ts'
import { type Acknowledgement, BEGIN, readSnapshot, type RolloutSnapshot } from './read-snapshot.ts'
import type { Db } from './stage-rows.ts'

/** Where the stages of partners live: in the database of the journal, shared by all instances and the commands. */
export type RolloutStore = ReturnType<typeof createRolloutStore>

/** Creates the store of stages in the database of a journal, which may be opened later. */
export function createRolloutStore(database: JournalDatabase) {
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
    /**
     * One consistent read, cheap enough for every instance twice a second. Ends what has expired. What contradicts `known` is damaged; with
     * keys it is marked so in the database, for all others.
     */
    snapshot: async (known?: KnownTrail): Promise<RolloutSnapshot> => {
      await ready()
      return readSnapshot(database, known, (partners) => expireChanges(database, partners))
    },
    /** Checks the audit trail, its end, that the stages are what its last rows say, and that all goes on from what is known. */
    verify: async (known?: KnownTrail): Promise<Verified> => {
      await ready()
      return verifyTrail(database, known)
    },
    /** The instances that were lost and have not come back: cut off, they serve a kept `legacy` without an end. */
    lost: () => ask((db) => readLostInstances(db, database, ownIdentity())),
    /** Keeps what an instance says of partners, in place of what it said of them before. */
    acknowledge: (instance: number, rows: readonly Acknowledgement[]) =>
      ask((db) => acknowledge(db, instance, rows)),
    /** Removes what an instance has said, at its clean end. */
    leave: (instance: number) =>
      ask(async (db) => {
        await db.deleteFrom('rollout_acks').where('instance', '=', instance).execute()
      }),
    /**
     * Keeps where a partner begins by the file, the first time; later calls change nothing. What V2 served before that is not known to the
     * journal, so it also counts as a batch that was relayed unrecorded.
     */
    begin: (partner: string, setting: StageSetting) => ask((db) => keepBegin(database, db, partner, setting)),
    /** Notes that a batch was relayed to V2 `agoMs` ago which the journal does not know. */
    noteUnrecorded: (partner: string, agoMs: number) =>
      ask((db) => noteUnrecorded(database, db, partner, agoMs)),
    unrecorded: (partner: string) => ask((db) => readUnrecorded(db, partner)),
    /** Rows of the audit trail, oldest first. */
    history: (filter: HistoryFilter) => ask((db) => readHistory(db, filter)),
    /** The MAC of a row of the audit trail; undefined: there is none. */
    macOf: (entry: number) => ask((db) => readMac(db, entry)),
    /** Text that guards keep under a name; undefined: none. */
    readText: (name: string) => ask((db) => readText(db, name)),
    /** Replaces the text by what `update` makes of it; two at once come one after the other. `update` may run again. */
    updateText: (name: string, update: (text: string | undefined) => string) =>
      ask((db) => updateText(database, db, name, update)),
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
