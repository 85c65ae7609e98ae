import { randomBytes } from 'node:crypto'

import { type Kysely, sql } from 'kysely'

import { AdapterError } from '../errors.ts'
import { readMeta, writeMeta } from './meta.ts'
import { SLOTS } from './high-water.ts'
import type { Dialect } from './store.ts'
import type { JournalTables } from './tables.ts'

/** Brings the tables from the version before to its own. */
type Migration = (dialect: Dialect) => readonly string[]

/** All steps, oldest first; one that was released is never changed. The version of a journal is how many it has. */
const migrations: readonly Migration[] = [createTables]

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
    `create table journal_keys (id text primary key, proof text not null)`,
    `create table journal_instances (id ${numbered}, host text not null, boot text not null, pid bigint not null,
       started text not null, lease_until bigint not null, lease_ms bigint not null, lost integer ${counter})`,
    `create table journal_batches (id ${id}, partner text not null, owner text not null, ids text, content text not null,
       received_ms bigint not null, age_ms bigint ${counter}, instance bigint not null, open integer not null, active integer not null,
       answered integer ${counter}, retired integer ${counter}, on_v2 integer not null, newcomer integer not null,
       retires text not null, bytes bigint not null, asked_by bigint)`,
    `create index journal_batches_ids on journal_batches (ids) where ids is not null and retired = 0`,
    `create index journal_batches_open on journal_batches (instance) where open > 0`,
    `create index journal_batches_kept on journal_batches (owner, newcomer, bytes) where bytes > 0`,
    ...['journal_payloads', 'journal_credentials'].map(
      (table) => `create table ${table} (batch ${id}, key_id text, body ${bytes} not null)`,
    ),
    `create table journal_answers (id ${numbered}, batch bigint not null, key_id text, body ${bytes} not null)`,
    `create index journal_answers_batch on journal_answers (batch)`,
    // A record is found by its batch, and SQLite then needs no second tree.
    `create table journal_records (batch bigint not null, position integer not null, key text not null, state integer not null,
       active integer not null, retry bigint, reason text, attempts integer not null default 1, superseded integer ${counter},
       dead_letter integer ${counter}, settled_ms bigint, mark text, primary key (batch, position))
       ${dialect === 'sqlite' ? 'without rowid' : ''}`,
    // Only what is active: entries in an index of all keys would land on random pages of a large tree. In its order, those of each
    // state by themselves, so that the nearest open record of a key is found in one step.
    `create index journal_records_active on journal_records (key, state, batch, position) where active = 1`,
    `create index journal_records_due on journal_records (retry) where active = 1 and state <> 0 and retry >= 0`,
    `create index journal_records_dead on journal_records (batch) where dead_letter = 1`,
    `create table journal_ledger (partner text primary key, open bigint not null, confirmed bigint not null,
       refused bigint not null, unknown bigint not null, parked bigint not null)`,
    `create table journal_rate_slots (name text primary key, slots text not null, paused_until bigint not null,
       idle_from bigint not null)`,
    `create table journal_commits (slot integer primary key, commits bigint ${counter}, last_batch bigint ${counter}, marker text)`,
    `insert into journal_commits (slot) values ${Array.from({ length: SLOTS }, (_, slot) => `(${slot})`).join()}`,
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

/** True where a journal has its tables in this database. */
export async function hasTables(db: Kysely<JournalTables>, dialect: Dialect): Promise<boolean> {
  const query =
    dialect === 'sqlite'
      ? sql`select 1 from sqlite_master where type = 'table' and name = 'journal_meta'`
      : sql`select 1 where to_regclass('journal_meta') is not null`
  return (await query.execute(db)).rows.length > 0
}
