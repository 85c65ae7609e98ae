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
  type HistoryFilter,
  type KnownTrail,
  readHistory,
  readMac,
  type Verified,
  verifyTrail,
} from './audit-trail.ts'
import { createStageChanges, expireChanges, readUnrecorded } from './changes.ts'
import { type Acknowledgement, BEGIN, readSnapshot, type RolloutSnapshot } from './read-snapshot.ts'
import { type Db, forUpdate, rowsOf } from './stage-rows.ts'

/** Where the stages of partners live: in the database of the journal, shared by all instances and the commands. */
export type RolloutStore = ReturnType<typeof createRolloutStore>

/** Creates the store of stages in the database of a journal, which may be opened later. */
export function createRolloutStore(database: JournalDatabase) {
  const ask = <Result>(question: (db: Db) => Promise<Result>): Promise<Result> =>
    database.ask(() => question(database.db))
  return {
    ...createStageChanges(database),
    /**
     * One consistent read, cheap enough for every instance twice a second. Ends what has expired. What contradicts `known` is damaged; with
     * keys it is marked so in the database, for all others. `left`: partners of which it says whether their records of V3 are settled.
     */
    snapshot: (known?: KnownTrail, left: readonly string[] = []): Promise<RolloutSnapshot> =>
      readSnapshot(database, known, left, (partners) => expireChanges(database, partners)),
    /** Checks the audit trail, its end, that the stages are what its last rows say, and that all goes on from what is known. */
    verify: (known?: KnownTrail): Promise<Verified> => verifyTrail(database, known),
    /** The instances that were lost and have not come back: cut off, they serve a kept `legacy` without an end. */
    lost: () => ask((db) => readLostInstances(db, database, ownIdentity())),
    /** Keeps what an instance says of partners, in place of what it said of them before. */
    acknowledge: (instance: number, rows: readonly Acknowledgement[]) =>
      ask((db) => acknowledge(db, instance, rows)),
    /** Removes what an instance has said, at its clean end. */
    leave: (instance: number): Promise<void> =>
      ask(async (db) => {
        await sql`delete from rollout_acks where instance = ${instance}`.execute(db)
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

/** Keeps where a partner begins, unless that is known already. */
function keepBegin(database: JournalDatabase, db: Db, partner: string, setting: StageSetting): Promise<void> {
  return db.transaction().execute(async (transaction) => {
    const text = formatSetting(setting)
    const kept = await rowsOf(transaction, sql`insert into rollout_evidence (name, text) values (${`${BEGIN}${partner}`}, ${text})
      on conflict (name) do nothing returning name`) // prettier-ignore
    if (kept.length > 0) await noteUnrecorded(database, transaction, partner, 0)
  })
}

/** Keeps the time of the last batch that was relayed without a record. */
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
    // An empty row stands for none: it can be locked.
    await sql`insert into rollout_evidence (name, text) values (${name}, '') on conflict (name) do nothing`.execute(transaction) // prettier-ignore
    const [before] = await rowsOf(transaction, sql<{ text: string }>`${textOf(name)} ${forUpdate(database)}`)
    const text = update(before?.text === '' ? undefined : before?.text)
    await sql`update rollout_evidence set text = ${text} where name = ${name}`.execute(transaction)
    return text
  })
}
