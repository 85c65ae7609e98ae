import { sql } from 'kysely'

import {
  type DatabaseOptions,
  type JournalDatabase,
  linkSecretOf,
  openJournalDatabase,
  ownIdentity,
  readLostInstances,
  readV2Clients,
  readSalt,
  type V2Client,
} from '../../journal/index.ts'
import { createEvidenceStore, type EvidenceStore } from '../evidence/evidence-store.ts'
import { formatSetting, type StageSetting } from '../stage.ts'
import { type Head, type HistoryFilter, readHistory, verifyTrail } from './audit-trail.ts'
import { createStageChanges, readUnrecorded } from './changes.ts'
import { type Acknowledgement, BEGIN, readSnapshot, type RolloutSnapshot } from './read-snapshot.ts'
import { type Db, forUpdate, rowsOf } from './stage-rows.ts'

/** The store of the partners' stages, in the database of the journal. All instances and commands share this store. */
export type RolloutStore = ReturnType<typeof createRolloutStore>

/** Creates the store in the database of a journal. The database may be opened later. */
export function createRolloutStore(database: JournalDatabase) {
  const ask = <Result>(question: (db: Db) => Promise<Result>): Promise<Result> =>
    database.ask(() => question(database.db))
  return {
    ...createStageChanges(database),
    /**
     * Reads all stages at one moment. The read is cheap enough for every instance to repeat it twice a second. The snapshot says whether
     * the trail contains `known`, and which partners of `left` have settled their V3 records.
     */
    snapshot: (known?: Head, left: readonly string[] = []): Promise<RolloutSnapshot> =>
      readSnapshot(database, known, left),
    /** Checks that the audit trail is a complete chain of hashes, and that the chain contains `known`. */
    verify: (known?: Head) => ask((db) => verifyTrail(db, known)),
    /** Returns the lost instances that have not come back. Without the journal, they may serve a saved `legacy` stage without limit. */
    lost: () => ask((db) => readLostInstances(db, database, ownIdentity())),
    /** Stores acknowledgements of an instance, which replace its earlier acknowledgements of the same partners. */
    acknowledge: (instance: number, rows: readonly Acknowledgement[]) =>
      ask((db) => acknowledge(db, instance, rows)),
    /** Deletes the acknowledgements of an instance that stops in an orderly way. */
    forget: (instance: number): Promise<void> =>
      ask(async (db) => {
        await sql`delete from rollout_acks where instance = ${instance}`.execute(db)
      }),
    /**
     * Stores the setting with which a partner begins, unless a setting is stored already. The journal does not contain earlier writes on
     * V2, so the partner also counts as having relayed an unrecorded batch now.
     */
    begin: (partner: string, setting: StageSetting) => ask((db) => keepBegin(database, db, partner, setting)),
    /** Records that a batch was relayed to V2 `agoMs` milliseconds ago without an entry in the journal. */
    noteUnrecorded: (partner: string, agoMs: number) =>
      ask((db) => noteUnrecorded(database, db, partner, agoMs)),
    /** Returns the clients of a partner that sent writes, as far back as the journal stores batches. */
    clients: (partner: string): Promise<readonly V2Client[]> => ask((db) => readV2Clients(db, partner)),
    unrecorded: (partner: string) => ask((db) => readUnrecorded(db, partner)),
    /** Returns entries of the audit trail, oldest first. */
    history: (filter: HistoryFilter) => ask((db) => readHistory(db, filter)),
    /** Returns the text that is stored under a name, or `undefined` if there is none. */
    readText: (name: string) => ask((db) => readText(db, name)),
    /** Returns the secret from which the instances derive the position of each unit at `canary`. */
    unitSecret: () => ask(async (db) => linkSecretOf(await readSalt(db))),
    /** Replaces a stored text by the result of `update`, which may run more than once. Concurrent calls run one after the other. */
    updateText: (name: string, update: (text: string | undefined) => string) =>
      ask((db) => updateText(database, db, name, update)),
  }
}

export interface OpenedRolloutStore extends RolloutStore {
  readonly evidence: EvidenceStore
  close(): Promise<void>
}

/** Opens the store of an existing journal. `known` is a head that the trail must contain. Throws the errors of `openJournalDatabase`. */
export async function openRolloutStore(options: DatabaseOptions, known?: Head): Promise<OpenedRolloutStore> {
  const database = await openJournalDatabase(options)
  const store = createRolloutStore(database)
  return {
    ...store,
    verify: (head = known) => store.verify(head),
    evidence: createEvidenceStore(database),
    close: () => database.close(),
  }
}

async function acknowledge(db: Db, instance: number, rows: readonly Acknowledgement[]): Promise<void> {
  if (rows.length === 0) return
  await db.transaction().execute(async (transaction) => {
    // Deletes the rows of instances that have ended or were lost. They are useless, because numbers of instances are never reused.
    await sql`delete from rollout_acks
      where instance not in (select id from journal_instances where lost = 0)`.execute(transaction)
    const sorted = [...rows].sort((one, other) => (one.partner < other.partner ? -1 : 1))
    for (const { partner, revision, pendingRevision = null, writesV2, writesV3 } of sorted)
      await sql`insert into rollout_acks (instance, partner, revision, pending_revision, writes_v2, writes_v3)
        values (${instance}, ${partner}, ${revision}, ${pendingRevision}, ${writesV2}, ${writesV3})
        on conflict (instance, partner) do update set revision = excluded.revision, pending_revision = excluded.pending_revision,
          writes_v2 = excluded.writes_v2, writes_v3 = excluded.writes_v3`.execute(transaction)
  })
}

function keepBegin(database: JournalDatabase, db: Db, partner: string, setting: StageSetting): Promise<void> {
  return db.transaction().execute(async (transaction) => {
    const text = formatSetting(setting)
    const kept = await rowsOf(transaction, sql`insert into rollout_evidence (name, text) values (${`${BEGIN}${partner}`}, ${text})
      on conflict (name) do nothing returning name`) // prettier-ignore
    if (kept.length > 0) await noteUnrecorded(database, transaction, partner, 0)
  })
}

async function noteUnrecorded(
  { nowMs }: Pick<JournalDatabase, 'nowMs'>,
  db: Db,
  partner: string,
  agoMs: number,
): Promise<void> {
  await sql`insert into rollout_unrecorded (partner, at_ms)
    values (${partner}, ${nowMs()} - ${sql.lit(Math.max(0, Math.floor(agoMs)))})
    on conflict (partner) do update set at_ms = excluded.at_ms where excluded.at_ms > rollout_unrecorded.at_ms`.execute(
    db,
  )
}

async function readText(db: Db, name: string): Promise<string | undefined> {
  const [row] = await rowsOf(db, textOf(name))
  return row?.text
}

const textOf = (name: string) => sql<{ text: string }>`select text from rollout_evidence where name = ${name}`

function updateText(
  database: JournalDatabase,
  db: Db,
  name: string,
  update: (text: string | undefined) => string,
): Promise<string> {
  return db.transaction().execute(async (transaction) => {
    // Inserts an empty text for a missing row, because only an existing row can be locked.
    await sql`insert into rollout_evidence (name, text) values (${name}, '') on conflict (name) do nothing`.execute(transaction) // prettier-ignore
    const [before] = await rowsOf(transaction, sql<{ text: string }>`${textOf(name)} ${forUpdate(database)}`)
    const text = update(before?.text === '' ? undefined : before?.text)
    await sql`update rollout_evidence set text = ${text} where name = ${name}`.execute(transaction)
    return text
  })
}
