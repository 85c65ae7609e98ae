import { randomBytes } from 'node:crypto'

import { type Generated, type Kysely, sql } from 'kysely'

import { AdapterError } from '../errors.ts'
import { SLOTS } from './high-water.ts'
import { RESEND, stateCodes } from './lifecycle.ts'

/** The two databases. */
export type Dialect = 'sqlite' | 'postgres'

/**
 * The tables that queries are built for; all others are asked with SQL of their own. The same for SQLite and PostgreSQL
 * (docs/decisions/006-journal.md). Times are milliseconds since the epoch; flags are 0 or 1, since SQLite has no booleans; digests and
 * hashes are hexadecimal text, so that lists of rows are JSON.
 */
export interface JournalTables {
  /**
   * `version`: of the tables. `salt`: 16 bytes in hexadecimal, for the hashes of record keys. `identity`: tells this journal from any
   * other. `read_back_until`: until then (ms since the epoch) new records are looked for in V3 before they are posted;
   * `read_back_from_age`: the age of the journal when that began. `age`: the age of the journal (retention.ts). `unclean end: <how>`:
   * when an instance was last found gone. `mac_key`: the sealed key of the MACs of stages (keys.ts). `note: <name>`: a text of the
   * adapter. `database`: in PostgreSQL, which database the journal is in (high-water.ts).
   */
  readonly journal_meta: { readonly name: string; readonly value: string }
  readonly journal_instances: {
    readonly id: Generated<number>
    readonly host: string
    readonly boot: string
    readonly pid: number
    readonly started: string
    readonly lease_until: number
    readonly lease_ms: number
    readonly lost: Generated<number>
  }
}

/** Brings the tables from the version before to its own. */
type Migration = (dialect: Dialect) => readonly string[]

/** All steps, oldest first; one that was released is never changed. The version of a journal is how many it has. */
const migrations: readonly Migration[] = [createTables, addNotApplied]

/** The rows of `journal_commits`. */
const allSlots = Array.from({ length: SLOTS }, (_, slot) => `(${slot})`).join()

/** The types of each database. Numbers of deleted rows must never come again: SQLite promises that for AUTOINCREMENT only. */
const types = {
  sqlite: { numbered: 'integer primary key autoincrement', id: 'integer primary key', bytes: 'blob' },
  postgres: {
    numbered: 'bigint primary key generated always as identity',
    id: 'bigint primary key',
    bytes: 'bytea',
  },
} as const

function createTables(dialect: Dialect): readonly string[] {
  const { numbered, id, bytes } = types[dialect]
  const counter = 'not null default 0'
  return [
    // Keys that something here is encrypted with; `proof` tells another key of the same id.
    `create table journal_keys (id text primary key, proof text not null)`,
    // `boot`, `started`: what identifies a process (instances.ts). `lease_until` changes with every renewal. `lost`: others have taken over
    // from it, and it may still run.
    `create table journal_instances (id ${numbered}, host text not null, boot text not null, pid bigint not null,
       started text not null, lease_until bigint not null, lease_ms bigint not null, lost integer ${counter})`,
    // `owner`: whose batch it is. `age_ms`: the age of the journal when it began. `instance`: the one that may settle it. `open`, `active`:
    // how many of its records are. `answered`: its reply was written out whole. `retired`: its client used its ids for another batch after
    // it had the answer, so it is never found again. `on_v2`: V2 serves it. `newcomer`: neither V3 nor V2 has accepted the credentials that
    // it came with yet; `retires`: the batches that it retires once they are, numbers in a JSON array. `bytes`: of its request, before it is
    // compressed, with some for each record; 0: it is deleted. `asked_by`: the instance that asks for it, since it can finish it.
    `create table journal_batches (id ${id}, partner text not null, owner text not null, ids text, content text not null,
       received_ms bigint not null, age_ms bigint ${counter}, instance bigint not null, open integer not null, active integer not null,
       answered integer ${counter}, retired integer ${counter}, on_v2 integer not null, newcomer integer not null,
       retires text not null, bytes bigint not null, asked_by bigint)`,
    `create index journal_batches_ids on journal_batches (ids) where ids is not null and retired = 0`,
    `create index journal_batches_open on journal_batches (instance) where open > 0`,
    `create index journal_batches_kept on journal_batches (owner, newcomer, bytes) where bytes > 0`,
    // A table of its own: SQLite writes a row anew with all its pages when any column changes. `key_id`: what `body` is encrypted with;
    // null: it is not.
    ...['journal_payloads', 'journal_credentials'].map(
      (table) => `create table ${table} (batch ${id}, key_id text, body ${bytes} not null)`,
    ),
    // Answers, several in one row; of two for one position the later row counts.
    `create table journal_answers (id ${numbered}, batch bigint not null, key_id text, body ${bytes} not null)`,
    `create index journal_answers_batch on journal_answers (batch)`,
    // `key`: the salted hash of the key. `state`: a code of lifecycle.ts. `active`: it is open, due, or may be sent again. `retry`: null:
    // never; -1: with the same batch; otherwise when it is due; while it is open what it was before. `mark`: of a confirmed record, the mark
    // of the service (seal.ts). A record is found by its batch, and SQLite then needs no second tree.
    `create table journal_records (batch bigint not null, position integer not null, key text not null, state integer not null,
       active integer not null, retry bigint, reason text, attempts integer not null default 1, superseded integer ${counter},
       dead_letter integer ${counter}, settled_ms bigint, mark text, primary key (batch, position))
       ${dialect === 'sqlite' ? 'without rowid' : ''}`,
    // Only what is active: entries in an index of all keys would land on random pages of a large tree. In its order, those of each
    // state by themselves, so that the nearest open record of a key is found in one step.
    `create index journal_records_active on journal_records (key, state, batch, position) where active = 1`,
    `create index journal_records_due on journal_records (retry) where active = 1 and state <> 0 and retry >= 0`,
    `create index journal_records_dead on journal_records (batch) where dead_letter = 1`,
    // The totals of a partner.
    `create table journal_ledger (partner text primary key, open bigint not null, confirmed bigint not null,
       refused bigint not null, unknown bigint not null, parked bigint not null)`,
    // When calls with one key may leave, over all instances. `name`: the salted hash of the key. `slots`: the latest ones that were reserved,
    // oldest first, times in a JSON array. `idle_from`: from then on they hold no call back.
    `create table journal_rate_slots (name text primary key, slots text not null, paused_until bigint not null,
       idle_from bigint not null)`,
    // Groups that were committed, by the slot of their instance (high-water.ts). `last_batch`: the highest number that it gave a batch.
    // `marker`: names its last group, and tells later whether a commit without an answer was made.
    `create table journal_commits (slot integer primary key, commits bigint ${counter}, last_batch bigint ${counter}, marker text)`,
    `insert into journal_commits (slot) values ${allSlots}`,
    `insert into journal_meta (name, value) values ('identity', '${newIdentity()}'), ('salt', '${newIdentity()}')`,
    ...createRolloutTables(numbered, bytes),
  ]
}

/** The stages of partners (src/rollout/store), and what comparison has seen of them (src/rollout/evidence). */
const createRolloutTables = (numbered: string, bytes: string): readonly string[] => [
  `create table rollout_stages (partner text primary key, content text not null, mac text not null)`,
  `create table rollout_audit (entry bigint primary key, partner text not null, action text not null, content text not null,
     mac text not null)`,
  `create index rollout_audit_partner on rollout_audit (partner, entry)`,
  `create table rollout_head (id integer primary key, entries bigint not null, last_mac text not null, keyed_from bigint,
     partners bigint not null, repaired_ms bigint, mac text not null)`,
  `insert into rollout_head (id, entries, last_mac, partners, mac) values (1, 0, '', 0, '')`,
  `create table rollout_acks (instance bigint not null, partner text not null, revision bigint not null,
     pending_revision bigint, writes_v2 bigint not null, writes_v3 bigint not null, primary key (instance, partner))`,
  `create table rollout_unrecorded (partner text primary key, at_ms bigint not null)`,
  `create table rollout_evidence (name text primary key, text text not null)`,
  `create table evidence_periods (id ${numbered}, partner text not null, stage text not null, revision bigint not null,
     period integer not null, since_ms bigint not null, last_ms bigint not null, from_day text not null,
     until_day text not null, hash_key ${bytes}, sealed integer not null default 0,
     kept text, unique (partner, stage, revision, period))`,
  `create table evidence_hashes (period bigint not null, hash ${bytes} not null, school ${bytes}, checks integer not null,
     differs integer not null, primary key (period, hash))`,
  `create table evidence_counts (period bigint not null, name text not null, count bigint not null,
     primary key (period, name))`,
]

/** Adds the total of records that nobody judged. */
function addNotApplied(): readonly string[] {
  return ['alter table journal_ledger add column not_applied bigint not null default 0']
}

/**
 * Moves records that are sent again with their batch from `refused`, as the first version has them, to `notApplied`. Instances of that
 * version go on beside newer ones until each is replaced, so every start does it.
 */
const moveToNotApplied = (): readonly string[] => {
  const old = `r.state = ${stateCodes.refused} and r.active = 1 and r.retry = ${RESEND}`
  return [
    `update journal_ledger as l set refused = refused - c.n, not_applied = not_applied + c.n
     from (select b.partner, count(*) as n from journal_records r join journal_batches b on b.id = r.batch
       where ${old} group by b.partner) c where c.partner = l.partner`,
    `update journal_records as r set state = ${stateCodes.notApplied} where ${old}`,
  ]
}

/** Random, 16 bytes in hexadecimal: distinguishes a journal from any other. */
export const newIdentity = (): string => randomBytes(16).toString('hex')

/**
 * Creates the tables or brings them up to date; to be called alone. Error: `ADP_CONFIGURATION` for tables of another program version,
 * which stay as they are.
 */
export async function migrate(db: Kysely<JournalTables>, dialect: Dialect): Promise<void> {
  const version = await readVersion(db, dialect)
  if (version === 0)
    await sql`create table journal_meta (name text primary key, value text not null)`.execute(db)
  for (const step of migrations.slice(version))
    for (const statement of step(dialect)) await sql.raw(statement).execute(db)
  for (const statement of moveToNotApplied()) await sql.raw(statement).execute(db)
  if (version < migrations.length) await writeMeta(db, 'version', String(migrations.length))
}

/** Sees to it that the tables are those that this program knows. Error: `ADP_CONFIGURATION`. */
export async function checkVersion(db: Kysely<JournalTables>, dialect: Dialect): Promise<void> {
  const version = await readVersion(db, dialect)
  if (version === migrations.length) return
  throw new AdapterError(
    'ADP_CONFIGURATION',
    `The journal has version ${version}, and this program expects ${migrations.length}: serve it once, which brings it up to date.`,
  )
}

/** Whether the tables are those of this version, of an earlier one, or not there. Error: `ADP_CONFIGURATION` for those of a later version. */
export async function stateOf(
  db: Kysely<JournalTables>,
  dialect: Dialect,
): Promise<'current' | 'earlier' | 'new'> {
  const version = await readVersion(db, dialect)
  if (version === 0) return 'new'
  return version < migrations.length ? 'earlier' : 'current'
}

/** The version of the tables; 0: there are none. */
async function readVersion(db: Kysely<JournalTables>, dialect: Dialect): Promise<number> {
  if (!(await hasTables(db, dialect))) return 0
  const version = Number((await readMeta(db, 'version')) ?? 0)
  if (version >= 1 && version <= migrations.length) return version
  throw new AdapterError(
    'ADP_CONFIGURATION',
    version > migrations.length
      ? `The journal has version ${version} and this program knows up to ${migrations.length}: a newer one has ` +
          'changed it. Start that version again, or name another journal.'
      : 'The journal has tables of a preliminary version of Markbridge, which this version cannot read: finish its open records with ' +
          'the version that wrote it, then name a new journal.',
  )
}

/** What values in `journal_meta` look like; the first two are what everything else is read with. */
const forms: Readonly<Record<string, RegExp>> = {
  version: /^[1-9]\d{0,8}$/,
  salt: /^[0-9a-f]{32}$/,
  identity: /^[0-9a-f]{32}$/,
  age: /^\d{1,15}$/,
  read_back_until: /^\d{1,15}$/,
  read_back_from_age: /^\d{1,15}$/,
}
/** What every journal has. */
const always = ['version', 'salt', 'identity']

/** What of `journal_meta` is not as any version writes it. */
interface Unreadable {
  readonly names: readonly string[]
  readonly damage: string
  /** False: without it nothing in the journal can be read. */
  readonly usable: boolean
}

/** Finds values of `journal_meta` that a disk has changed; undefined: none. */
export async function findUnreadable(
  db: Kysely<JournalTables>,
  dialect: Dialect,
): Promise<Unreadable | undefined> {
  if (!(await hasTables(db, dialect))) return undefined
  const { rows } = await sql<{ name: string; value: string }>`select name, value from journal_meta`.execute(
    db,
  )
  const values = new Map(rows.map(({ name, value }) => [name, value]))
  // Tables of a preliminary version: `migrate` says so.
  if (values.has('schema') && !values.has('version')) return undefined
  const names = Object.entries(forms).flatMap(([name, form]) => {
    const value = values.get(name)
    const isSound = value === undefined ? !always.includes(name) : form.test(value)
    return isSound ? [] : [name]
  })
  if (names.length === 0) return undefined
  const usable = !names.includes('version') && !names.includes('salt')
  return { names, damage: `its ${names.join(', ')} cannot be read (table journal_meta)`, usable }
}

/** True where a journal has its tables in this database. */
export async function hasTables(db: Kysely<JournalTables>, dialect: Dialect): Promise<boolean> {
  const query =
    dialect === 'sqlite'
      ? sql`select 1 from sqlite_master where type = 'table' and name = 'journal_meta'`
      : sql`select 1 where to_regclass('journal_meta') is not null`
  return (await query.execute(db)).rows.length > 0
}

/** Counts commits from the start again, as another journal does; numbers of batches go on. */
export async function countAnew(db: Kysely<JournalTables>): Promise<void> {
  const { rows } = await sql<{ last: number }>`select max(last) as last from (
    select max(id) as last from journal_batches union all
    select max(last_batch) from journal_commits where last_batch < ${Number.MAX_SAFE_INTEGER / 2} union all select 0) as l`.execute(
    db,
  )
  await sql`delete from journal_commits`.execute(db)
  await sql`insert into journal_commits (slot) values ${sql.raw(allSlots)}`.execute(db)
  await sql`update journal_commits set last_batch = ${rows[0]?.last ?? 0}`.execute(db)
}

/** Reads the value of a name in `journal_meta`; undefined: there is none. */
export async function readMeta(db: Kysely<JournalTables>, name: string): Promise<string | undefined> {
  const { rows } = await sql<{ value: string }>`select value from journal_meta where name = ${name}`.execute(
    db,
  )
  return rows[0]?.value
}

/** Reads the salt of what is hashed. */
export const readSalt = async (db: Kysely<JournalTables>): Promise<Buffer> =>
  Buffer.from((await readMeta(db, 'salt')) ?? '', 'hex')

/** Sets the value of a name, in place of the one before. */
export async function writeMeta(db: Kysely<JournalTables>, name: string, value: string): Promise<void> {
  await sql`insert into journal_meta (name, value) values (${name}, ${value})
    on conflict (name) do update set value = excluded.value`.execute(db)
}
