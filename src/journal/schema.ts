import { randomBytes } from 'node:crypto'

import { type Generated, type Kysely, sql } from 'kysely'

import { AdapterError } from '../errors.ts'
import { SLOTS } from './high-water.ts'
import { stateColumns } from './lifecycle.ts'

export type Dialect = 'sqlite' | 'postgres'

/**
 * The tables that Kysely queries use; all other tables are queried with raw SQL. The tables are the same for SQLite and PostgreSQL
 * (docs/decisions/006-journal.md). Times are milliseconds since the epoch. Flags are 0 or 1, because SQLite has no booleans. Digests and
 * hashes are hexadecimal text, so that lists of rows can be passed as JSON.
 */
export interface JournalTables {
  /**
   * Names and values:
   *
   * `version`: version of the tables. `salt`: 16 bytes in hexadecimal, for the hashes of record keys. `identity`: distinguishes this
   * journal from other journals.
   *
   * `read_back_until`: the time (milliseconds since the epoch) until which new records are read back from V3 before they are posted.
   * `read_back_from_age`: the age of the journal when that period began. `age`: the age of the journal (retention.ts).
   *
   * `unclean end: <how>`: the time when a dead instance was last found. `secret`: the sealed secret of the journal (keys.ts). `note:
   * <name>`: a note of the adapter (`Journal.readNote`). `database`: identifies the PostgreSQL database that contains the journal
   * (find-contradiction.ts).
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

/** The version of the tables. Every change of the tables needs a new version. A journal of another version is refused. */
const VERSION = 5

const allSlots = Array.from({ length: SLOTS }, (_, slot) => `(${slot})`).join()

/** The column types of each database. The number of a deleted row must never be reused; SQLite guarantees this only with AUTOINCREMENT. */
const types = {
  sqlite: { numbered: 'integer primary key autoincrement', id: 'integer primary key', bytes: 'blob' },
  postgres: {
    numbered: 'bigint primary key generated always as identity',
    id: 'bigint primary key',
    bytes: 'bytea',
  },
} as const

function tables(dialect: Dialect): readonly string[] {
  const { numbered, id, bytes } = types[dialect]
  const counter = 'not null default 0'
  const states = Object.values(stateColumns)
    .map((column) => `${column} integer not null`)
    .join()
  return [
    `create table journal_meta (name text primary key, value text not null)`,
    // The keys that encrypt content of this journal. `proof` detects another key with the same id.
    `create table journal_keys (id text primary key, proof text not null)`,
    // `boot` and `started` identify a process (process-identity.ts). `lease_until` changes with every renewal. `lost`: 1 if other instances
    // have taken over from the instance, which may still be running.
    `create table journal_instances (id ${numbered}, host text not null, boot text not null, pid bigint not null,
       started text not null, lease_until bigint not null, lease_ms bigint not null, lost integer ${counter})`,
    // `owner`: the owner of the batch. `age_ms`: the age of the journal when the batch began. `instance`: the instance that may settle the
    // batch. The columns of `stateColumns` and `active`: the numbers of records of the batch in each state, and of active records.
    // `answered`: 1 if the reply was written out completely. `retired`: 1 if the batch is never recognised again, because another batch
    // replaced it, or because its client received the reply and then reused its ids. `on_v2`: 1 if V2 serves the batch. `newcomer`: 1 until
    // V3 or V2 accepts the credentials of the batch. `retires`: the batches to retire once the credentials are accepted, as a JSON array of
    // numbers. `bytes`: the size of the request before compression, plus an allowance for each record; 0 once the request is deleted.
    // `asked_by`: the instance that asks for the batch because it can finish the batch.
    `create table journal_batches (id ${id}, partner text not null, owner text not null, ids text, content text not null,
       received_ms bigint not null, age_ms bigint ${counter}, instance bigint not null, ${states}, active integer not null,
       answered integer ${counter}, retired integer ${counter}, on_v2 integer not null, newcomer integer not null,
       retires text not null, bytes bigint not null, asked_by bigint)`,
    `create index journal_batches_ids on journal_batches (ids) where ids is not null and retired = 0`,
    `create index journal_batches_open on journal_batches (instance) where open > 0`,
    // Indexes for the searches of the console, which lists batches by number.
    `create index journal_batches_received on journal_batches (received_ms, id)`,
    `create index journal_batches_partner on journal_batches (partner, id)`,
    ...['refused', 'unknown', 'parked', 'not_applied'].map(
      (state) => `create index journal_batches_${state} on journal_batches (id) where ${state} > 0`,
    ),
    `create index journal_batches_kept on journal_batches (owner, newcomer, bytes) where bytes > 0`,
    // Payloads and credentials have their own tables, because SQLite rewrites all pages of a row when any column changes. `key_id`: the key
    // that encrypts `body`, or null if `body` is not encrypted.
    ...['journal_payloads', 'journal_credentials'].map(
      (table) => `create table ${table} (batch ${id}, key_id text, body ${bytes} not null)`,
    ),
    // Each row contains several reply parts. If two rows have a part for the same position, the later row counts.
    `create table journal_answers (id ${numbered}, batch bigint not null, key_id text, body ${bytes} not null)`,
    `create index journal_answers_batch on journal_answers (batch)`,
    // `key`: the salted hash of the record's key. `state`: a code from lifecycle.ts. `active`: 1 if the record is open, due, or may be sent
    // again. `retry`: null if the record is never sent again, -1 if it is sent again with a resend of its batch, otherwise the time when it
    // is due; unchanged while the record is open. `mark`: the service's mark for a confirmed record (seal.ts). The primary key contains the
    // batch, so `without rowid` saves SQLite a second tree.
    `create table journal_records (batch bigint not null, position integer not null, key text not null, state integer not null,
       active integer not null, retry bigint, reason text, attempts integer not null default 1, superseded integer ${counter},
       dead_letter integer ${counter}, settled_ms bigint, mark text, primary key (batch, position))
       ${dialect === 'sqlite' ? 'without rowid' : ''}`,
    // Covers only active records. An index of all records would be a large tree, and each new key would change a random page of it. The
    // state comes before the batch, so that the nearest open record of a key is found in one step.
    `create index journal_records_active on journal_records (key, state, batch, position) where active = 1`,
    `create index journal_records_due on journal_records (retry) where active = 1 and state <> 0 and retry >= 0`,
    `create index journal_records_dead on journal_records (batch) where dead_letter = 1`,
    `create table journal_ledger (partner text primary key, open bigint not null, confirmed bigint not null,
       refused bigint not null, unknown bigint not null, parked bigint not null, not_applied bigint not null)`,
    // Reserved times at which calls with one subscription key may leave, across all instances. `name`: the salted hash of the subscription
    // key. `slots`: the latest reserved times, oldest first, as a JSON array. `idle_from`: the time from which these slots delay no call.
    `create table journal_rate_slots (name text primary key, slots text not null, paused_until bigint not null,
       idle_from bigint not null)`,
    // The number of commits in each slot of instances (high-water.ts). `last_batch`: the highest batch number assigned in the slot.
    // `marker`: identifies the last commit. After a lost response the marker shows whether the commit succeeded.
    `create table journal_commits (slot integer primary key, commits bigint ${counter}, last_batch bigint ${counter}, marker text)`,
    `insert into journal_commits (slot) values ${allSlots}`,
    // `content`: the other members of an entry, and the stage of its partner after the entry. `hash`: also covers the hash of the previous entry.
    `create table rollout_audit (entry bigint primary key, partner text not null, action text not null, content text not null,
       hash text not null)`,
    `create index rollout_audit_partner on rollout_audit (partner, entry)`,
    `create table rollout_acks (instance bigint not null, partner text not null, revision bigint not null,
       pending_revision bigint, writes_v2 bigint not null, writes_v3 bigint not null, primary key (instance, partner))`,
    `create table rollout_unrecorded (partner text primary key, at_ms bigint not null)`,
    `create table rollout_evidence (name text primary key, text text not null)`,
    `create table evidence_periods (id ${numbered}, partner text not null, stage text not null, revision bigint not null,
       period integer not null, since_ms bigint not null, last_ms bigint not null, from_day text not null,
       until_day text not null, hash_key ${bytes}, kept text, unique (partner, stage, revision, period))`,
    `create table evidence_hashes (period bigint not null, hash ${bytes} not null, school ${bytes}, checks integer not null,
       differs integer not null, primary key (period, hash))`,
    `create table evidence_counts (period bigint not null, name text not null, count bigint not null, primary key (period, name))`,
    `insert into journal_meta (name, value) values ('version', '${VERSION}'), ('identity', '${newIdentity()}'), ('salt', '${newIdentity()}')`,
  ]
}

export const newIdentity = (): string => randomBytes(16).toString('hex')

/** Creates the tables if the database has none. No other instance may use the database meanwhile. Throws the error of `hasOwnTables`. */
export async function createTables(db: Kysely<JournalTables>, dialect: Dialect): Promise<void> {
  if (await hasOwnTables(db, dialect)) return
  for (const statement of tables(dialect)) await sql.raw(statement).execute(db)
}

/** Returns true for tables of this version, or false if there are no tables. Throws `ADP_CONFIGURATION` for tables of another version. */
export async function hasOwnTables(db: Kysely<JournalTables>, dialect: Dialect): Promise<boolean> {
  if (!(await hasTables(db, dialect))) return false
  const version = Number((await readMeta(db, 'version')) ?? 0)
  if (version === VERSION) return true
  throw new AdapterError(
    'ADP_CONFIGURATION',
    `The journal has version ${version}, but this program needs version ${VERSION}. Nothing was changed. ` +
      (version > VERSION
        ? 'Start the newer program again, or name another journal.'
        : 'Finish the open records of the journal with the older program, then name a new journal.'),
  )
}

/** The valid forms of values in `journal_meta`. Without `version` and `salt` no other content can be read. */
const forms: Readonly<Record<string, RegExp>> = {
  version: /^[1-9]\d{0,8}$/,
  salt: /^[0-9a-f]{32}$/,
  identity: /^[0-9a-f]{32}$/,
  age: /^\d{1,15}$/,
  read_back_until: /^\d{1,15}$/,
  read_back_from_age: /^\d{1,15}$/,
}
const always = ['version', 'salt', 'identity']

/** The damaged entries of `journal_meta`. No version of Markbridge writes such values. */
interface Unreadable {
  readonly names: readonly string[]
  readonly damage: string
  readonly usable: boolean
}

export async function findUnreadable(
  db: Kysely<JournalTables>,
  dialect: Dialect,
): Promise<Unreadable | undefined> {
  if (!(await hasTables(db, dialect))) return undefined
  const { rows } = await sql<{ name: string; value: string }>`select name, value from journal_meta`.execute(
    db,
  )
  const values = new Map(rows.map(({ name, value }) => [name, value]))
  const names = Object.entries(forms).flatMap(([name, form]) => {
    const value = values.get(name)
    const isSound = value === undefined ? !always.includes(name) : form.test(value)
    return isSound ? [] : [name]
  })
  if (names.length === 0) return undefined
  const usable = !names.includes('version') && !names.includes('salt')
  return { names, damage: `its ${names.join(', ')} cannot be read (table journal_meta)`, usable }
}

export async function hasTables(db: Kysely<JournalTables>, dialect: Dialect): Promise<boolean> {
  const query =
    dialect === 'sqlite'
      ? sql`select 1 from sqlite_master where type = 'table' and name = 'journal_meta'`
      : sql`select 1 where to_regclass('journal_meta') is not null`
  return (await query.execute(db)).rows.length > 0
}

/** Resets the commit counts to zero, as in a new journal. The numbers of batches continue. */
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

export async function readMeta(db: Kysely<JournalTables>, name: string): Promise<string | undefined> {
  const { rows } = await sql<{ value: string }>`select value from journal_meta where name = ${name}`.execute(
    db,
  )
  return rows[0]?.value
}

export const readSalt = async (db: Kysely<JournalTables>): Promise<Buffer> =>
  Buffer.from((await readMeta(db, 'salt')) ?? '', 'hex')

export async function writeMeta(db: Kysely<JournalTables>, name: string, value: string): Promise<void> {
  await sql`insert into journal_meta (name, value) values (${name}, ${value})
    on conflict (name) do update set value = excluded.value`.execute(db)
}
