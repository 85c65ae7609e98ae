import {
  type JournalDatabase,
  type JournalTables,
  ownIdentity,
  readLostInstances,
} from '../../journal/index.ts'
import { adoptKey } from './adopt-key.ts'
import { readHistory, readMac, verifyTrail } from './audit-trail.ts'
import { keepBegin } from './begins.ts'
import { createStageChanges } from './change-stage.ts'
import { expireChanges } from './expire-changes.ts'
import { readSnapshot } from './read-snapshot.ts'
import type { Acknowledgement, RolloutStore } from './rollout-store.ts'
import { noteUnrecorded, readUnrecorded } from './unrecorded.ts'

/** Creates the store of stages in the database of a journal. */
export function createRolloutStore(database: JournalDatabase): RolloutStore {
  const { db } = database
  const changes = createStageChanges(database)
  let adopted = false
  /** Runs `act` once the MACs are those of the journal's keys. */
  const keyed = async <Result>(act: () => Promise<Result>): Promise<Result> => {
    if (!adopted) await adoptKey(database)
    adopted = true
    return act()
  }
  return {
    snapshot: (known) =>
      keyed(() => readSnapshot(database, known, (partners) => expireChanges(database, partners))),
    apply: (change, action) => keyed(() => changes.apply(change, action)),
    propose: (change) => keyed(() => changes.propose(change)),
    approve: (partner, revision, approval) => keyed(() => changes.approve(partner, revision, approval)),
    commit: (partner, revision) => keyed(() => changes.commit(partner, revision)),
    withdraw: (partner, revision, by, reason) => keyed(() => changes.withdraw(partner, revision, by, reason)),
    note: (partner, action, by, reason) => keyed(() => changes.note(partner, action, by, reason)),
    lost: () => database.ask(() => readLostInstances(db, database, ownIdentity())),
    dismiss: (instance, by, reason) => keyed(() => changes.dismiss(instance, by, reason)),
    acknowledge: (instance, rows) => database.ask(() => acknowledge(database, instance, rows)),
    leave: (instance) =>
      database.ask(async () => {
        await db.deleteFrom('rollout_acks').where('instance', '=', instance).execute()
      }),
    begin: (partner, setting) => database.ask(() => keepBegin(database, partner, setting)),
    noteUnrecorded: (partner, agoMs) => database.ask(() => noteUnrecorded(database, partner, agoMs)),
    unrecorded: (partner) => database.ask(() => readUnrecorded(database, db, partner)),
    history: (filter) => database.ask(() => readHistory(database, filter)),
    macOf: (entry) => database.ask(() => readMac(database, entry)),
    verify: (known) => keyed(() => verifyTrail(database, known)),
    readEvidence: (name) => database.ask(() => readEvidence(db, name)),
    updateEvidence: (name, update) => database.ask(() => updateEvidence(database, name, update)),
  }
}

type Db = JournalDatabase['db']

async function acknowledge(
  { db }: JournalDatabase,
  instance: number,
  rows: readonly Acknowledgement[],
): Promise<void> {
  if (rows.length === 0) return
  await db.transaction().execute(async (transaction) => {
    // Numbers never come again: what instances said that are gone is of no use.
    await transaction
      .deleteFrom('rollout_acks')
      .where('instance', 'not in', (eb) => eb.selectFrom('journal_instances').select('id'))
      .execute()
    for (const row of [...rows].sort((one, other) => (one.partner < other.partner ? -1 : 1))) {
      const content = {
        revision: row.revision,
        pending_revision: row.pendingRevision ?? null,
        writes_v2: row.writesV2,
        writes_v3: row.writesV3,
      } satisfies Partial<JournalTables['rollout_acks']>
      await transaction
        .insertInto('rollout_acks')
        .values({ instance, partner: row.partner, ...content })
        .onConflict((conflict) => conflict.columns(['instance', 'partner']).doUpdateSet(content))
        .execute()
    }
  })
}

async function readEvidence(db: Db, name: string): Promise<string | undefined> {
  const row = await db
    .selectFrom('rollout_evidence')
    .select('text')
    .where('name', '=', name)
    .executeTakeFirst()
  return row?.text
}

function updateEvidence(
  { db, dialect }: JournalDatabase,
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
