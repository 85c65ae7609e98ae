import { randomBytes } from 'node:crypto'

import { type ColumnDefinitionBuilder, type Kysely, sql } from 'kysely'

import type { JournalTables } from './tables.ts'

/** The two databases. */
export type Dialect = 'sqlite' | 'postgres'

/** The input of a migration. */
export interface MigrationContext {
  readonly dialect: Dialect
  /** Until then a batch from before may be sent again, ms since the epoch. */
  readonly replayUntilMs: number
}

/** Brings the tables from the version before to its own. */
export type Migration = (db: Kysely<JournalTables>, context: MigrationContext) => Promise<void>

/** All steps, oldest first; one that was released is never changed. The version of a journal is how many it has. */
export const migrations: readonly Migration[] = [
  createTables,
  createPace,
  addOwners,
  createCommits,
  addLeaseLength,
  addRowSums,
  orderLiveRecords,
  createRollout,
  addSide,
  createEvidence,
  addMarks,
  addNewcomers,
  addRepaired,
]

const required = (column: ColumnDefinitionBuilder): ColumnDefinitionBuilder => column.notNull()
const counter = (column: ColumnDefinitionBuilder): ColumnDefinitionBuilder => column.notNull().defaultTo(0)
/** The types of a dialect; `numbered` makes the column of `idType` the key, which the database fills. */
const typesOf = (dialect: Dialect) =>
  ({
    bytes: dialect === 'sqlite' ? 'blob' : 'bytea',
    // Numbers of deleted rows must never come again: SQLite promises that for AUTOINCREMENT only.
    idType: dialect === 'sqlite' ? 'integer' : 'bigint',
    numbered: (column: ColumnDefinitionBuilder): ColumnDefinitionBuilder =>
      dialect === 'sqlite'
        ? column.primaryKey().autoIncrement()
        : column.primaryKey().generatedAlwaysAsIdentity(),
  }) as const

async function createTables(db: Kysely<JournalTables>, { dialect }: MigrationContext): Promise<void> {
  const { bytes, idType, numbered } = typesOf(dialect)
  await db.schema
    .createTable('journal_keys')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('proof', bytes, required)
    .execute()
  await db.schema
    .createTable('journal_instances')
    .addColumn('id', idType, numbered)
    .addColumn('host', 'text', required)
    .addColumn('boot', 'text', required)
    .addColumn('pid', 'bigint', required)
    .addColumn('started', 'text', required)
    .addColumn('lease_until', 'bigint', required)
    .execute()
  await db.schema
    .createTable('journal_batches')
    .addColumn('id', idType, numbered)
    .addColumn('partner', 'text', required)
    .addColumn('ids', bytes)
    .addColumn('content', bytes, required)
    .addColumn('received_ms', 'bigint', required)
    .addColumn('owner', 'bigint', required)
    .addColumn('open', 'integer', counter)
    .addColumn('live', 'integer', counter)
    .execute()
  await sql`create index journal_batches_ids on journal_batches (ids) where ids is not null`.execute(db)
  await sql`create index journal_batches_open on journal_batches (owner) where open > 0`.execute(db)
  for (const table of ['journal_payloads', 'journal_credentials']) {
    await db.schema
      .createTable(table)
      .addColumn('batch', idType, (column) => column.primaryKey())
      .addColumn('key_id', 'text')
      .addColumn('body', bytes, required)
      .execute()
  }
  await createRecords(db, dialect)
  await db.schema
    .createTable('journal_answers')
    .addColumn('id', idType, numbered)
    .addColumn('batch', 'bigint', required)
    .addColumn('key_id', 'text')
    .addColumn('body', bytes, required)
    .execute()
  await sql`create index journal_answers_batch on journal_answers (batch)`.execute(db)
  await db.schema
    .createTable('journal_ledger')
    .addColumn('partner', 'text', required)
    .addColumn('slot', 'integer', required)
    .addColumn('open', 'bigint', counter)
    .addColumn('confirmed', 'bigint', counter)
    .addColumn('refused', 'bigint', counter)
    .addColumn('unknown', 'bigint', counter)
    .addColumn('parked', 'bigint', counter)
    .addPrimaryKeyConstraint('journal_ledger_key', ['partner', 'slot'])
    .execute()
}

async function createRecords(db: Kysely<JournalTables>, dialect: Dialect): Promise<void> {
  const table = db.schema
    .createTable('journal_records')
    .addColumn('batch', 'bigint', required)
    .addColumn('position', 'integer', required)
    .addColumn('key', typesOf(dialect).bytes, required)
    .addColumn('state', 'integer', required)
    .addColumn('live', 'integer', required)
    .addColumn('again', 'bigint')
    .addColumn('reason', 'text')
    .addColumn('attempts', 'integer', (column) => column.notNull().defaultTo(1))
    .addColumn('superseded', 'integer', counter)
    .addColumn('dead_letter', 'integer', counter)
    .addColumn('settled_ms', 'bigint')
    .addPrimaryKeyConstraint('journal_records_key', ['batch', 'position'])
  await (dialect === 'sqlite' ? table.modifyEnd(sql`without rowid`) : table).execute()
  // Only what is live: entries in an index of all keys would land on random pages of a large tree.
  await sql`create index journal_records_live on journal_records (key) where live = 1`.execute(db)
  await sql`create index journal_records_due on journal_records (again) where live = 1 and state <> 0 and again >= 0`.execute(
    db,
  )
  await sql`create index journal_records_dead on journal_records (batch) where dead_letter = 1`.execute(db)
}

async function createPace(db: Kysely<JournalTables>, { dialect }: MigrationContext): Promise<void> {
  await db.schema
    .createTable('journal_pace')
    .addColumn('name', typesOf(dialect).bytes, (column) => column.primaryKey())
    .addColumn('turns', 'text', required)
    .addColumn('held_until', 'bigint', required)
    .addColumn('idle_from', 'bigint', required)
    .execute()
}

/**
 * Batches from before have no owner, so a resend of one of them cannot be recognised: until none can come any longer, every
 * record is looked for in V3 before it is posted.
 */
async function addOwners(db: Kysely<JournalTables>, { replayUntilMs }: MigrationContext): Promise<void> {
  const before = await db.selectFrom('journal_batches').select('id').limit(1).executeTakeFirst()
  if (before !== undefined) {
    const until = { name: 'read_back_until', value: String(Math.ceil(replayUntilMs)) }
    const fromAge = { name: 'read_back_from_age', value: '0' }
    await db.insertInto('journal_meta').values([until, fromAge]).execute()
  }
  await db.schema
    .alterTable('journal_batches')
    .addColumn('owner_id', 'text', (column) => column.notNull().defaultTo(''))
    .execute()
  await db.schema.alterTable('journal_batches').addColumn('answered', 'integer', counter).execute()
  await db.schema.alterTable('journal_batches').addColumn('retired', 'integer', counter).execute()
  await db.schema.dropIndex('journal_batches_ids').execute()
  await sql`create index journal_batches_ids on journal_batches (ids) where ids is not null and retired = 0`.execute(
    db,
  )
}

/** The identity of a journal, and its count of commits. */
async function createCommits(db: Kysely<JournalTables>): Promise<void> {
  await db.schema
    .createTable('journal_commits')
    .addColumn('slot', 'integer', (column) => column.primaryKey())
    .addColumn('commits', 'bigint', required)
    .execute()
  await db.insertInto('journal_commits').values({ slot: 0, commits: 0 }).execute()
  await db
    .insertInto('journal_meta')
    .values({ name: 'identity', value: randomBytes(16).toString('hex') })
    .execute()
}

async function addLeaseLength(db: Kysely<JournalTables>): Promise<void> {
  await db.schema.alterTable('journal_instances').addColumn('lease_ms', 'bigint').execute()
}

/** Rows from before have none: they are read as they are until they are purged. */
async function addRowSums(db: Kysely<JournalTables>, { dialect }: MigrationContext): Promise<void> {
  await db.schema.alterTable('journal_batches').addColumn('sum', 'bigint').execute()
  await db.schema.alterTable('journal_records').addColumn('sum', 'bigint').execute()
  await db.schema.alterTable('journal_records').addColumn('key_copy', typesOf(dialect).bytes).execute()
}

/**
 * The live records of a key in their order, those of each state by themselves: the nearest open one is found in one step, however
 * many of its key are live.
 */
async function orderLiveRecords(db: Kysely<JournalTables>): Promise<void> {
  await db.schema.dropIndex('journal_records_live').execute()
  await sql`create index journal_records_live on journal_records (key, state, batch, position) where live = 1`.execute(
    db,
  )
}

/** The stages of partners (src/rollout/store). */
async function createRollout(db: Kysely<JournalTables>): Promise<void> {
  await db.schema
    .createTable('rollout_stages')
    .addColumn('partner', 'text', (column) => column.primaryKey())
    .addColumn('revision', 'bigint', required)
    .addColumn('last_revision', 'bigint', required)
    .addColumn('setting', 'text', required)
    .addColumn('since_ms', 'bigint', required)
    .addColumn('operator', 'text', required)
    .addColumn('reason', 'text', required)
    .addColumn('pending', 'text')
    .addColumn('entry', 'bigint', required)
    .addColumn('mac', 'text', required)
    .execute()
  await db.schema
    .createTable('rollout_audit')
    .addColumn('entry', 'bigint', (column) => column.primaryKey())
    .addColumn('at_ms', 'bigint', required)
    .addColumn('operator', 'text', required)
    .addColumn('partner', 'text', required)
    .addColumn('action', 'text', required)
    .addColumn('setting_from', 'text')
    .addColumn('setting_to', 'text')
    .addColumn('revision', 'bigint', required)
    .addColumn('reason', 'text', required)
    .addColumn('mac', 'text', required)
    .execute()
  await sql`create index rollout_audit_partner on rollout_audit (partner, entry)`.execute(db)
  await db.schema
    .createTable('rollout_head')
    .addColumn('id', 'integer', (column) => column.primaryKey())
    .addColumn('entries', 'bigint', required)
    .addColumn('last_mac', 'text', required)
    .addColumn('keyed_from', 'bigint')
    .addColumn('partners', 'bigint', required)
    .addColumn('mac', 'text', required)
    .execute()
  await db
    .insertInto('rollout_head')
    .values({ id: 1, entries: 0, last_mac: '', keyed_from: null, partners: 0, mac: '' })
    .execute()
  await db.schema
    .createTable('rollout_acks')
    .addColumn('instance', 'bigint', required)
    .addColumn('partner', 'text', required)
    .addColumn('revision', 'bigint', required)
    .addColumn('pending_revision', 'bigint')
    .addColumn('writes_v2', 'bigint', required)
    .addColumn('writes_v3', 'bigint', required)
    .addPrimaryKeyConstraint('rollout_acks_key', ['instance', 'partner'])
    .execute()
  await db.schema
    .createTable('rollout_unrecorded')
    .addColumn('partner', 'text', (column) => column.primaryKey())
    .addColumn('at_ms', 'bigint', required)
    .execute()
  await db.schema
    .createTable('rollout_evidence')
    .addColumn('name', 'text', (column) => column.primaryKey())
    .addColumn('text', 'text', required)
    .execute()
}

/** All batches from before were served by V3: 0. */
async function addSide(db: Kysely<JournalTables>): Promise<void> {
  await db.schema.alterTable('journal_batches').addColumn('side', 'integer', counter).execute()
}

/** What is kept for clients whose credentials were never accepted. Batches from before count as theirs who were. */
async function addNewcomers(db: Kysely<JournalTables>): Promise<void> {
  const table = 'journal_batches'
  await db.schema.alterTable(table).addColumn('newcomer', 'integer', counter).execute()
  await db.schema.alterTable(table).addColumn('retires', 'text').execute()
  await db.schema.alterTable(table).addColumn('bytes', 'bigint', counter).execute()
  await sql`create index journal_batches_kept on journal_batches (owner_id, newcomer, bytes) where bytes > 0`.execute(
    db,
  )
}

/** What comparison has seen of partners (src/rollout/evidence). */
async function createEvidence(db: Kysely<JournalTables>, { dialect }: MigrationContext): Promise<void> {
  const { bytes, idType, numbered } = typesOf(dialect)
  await db.schema
    .createTable('evidence_periods')
    .addColumn('id', idType, numbered)
    .addColumn('partner', 'text', required)
    .addColumn('stage', 'text', required)
    .addColumn('revision', 'bigint', required)
    .addColumn('period', 'integer', required)
    .addColumn('since_ms', 'bigint', required)
    .addColumn('last_ms', 'bigint', required)
    .addColumn('from_day', 'text', required)
    .addColumn('until_day', 'text', required)
    .addColumn('hash_key', bytes)
    .addColumn('sealed', 'integer', counter)
    .addColumn('kept', 'text')
    .addUniqueConstraint('evidence_periods_key', ['partner', 'stage', 'revision', 'period'])
    .execute()
  await db.schema
    .createTable('evidence_hashes')
    .addColumn('period', 'bigint', required)
    .addColumn('hash', bytes, required)
    .addColumn('school', bytes)
    .addColumn('checks', 'integer', required)
    .addColumn('differs', 'integer', required)
    .addPrimaryKeyConstraint('evidence_hashes_key', ['period', 'hash'])
    .execute()
  await db.schema
    .createTable('evidence_counts')
    .addColumn('period', 'bigint', required)
    .addColumn('name', 'text', required)
    .addColumn('count', 'bigint', required)
    .addPrimaryKeyConstraint('evidence_counts_key', ['period', 'name'])
    .execute()
}

/** The marks of confirmed records. */
async function addMarks(db: Kysely<JournalTables>, { dialect }: MigrationContext): Promise<void> {
  await db.schema.alterTable('journal_records').addColumn('mark', typesOf(dialect).bytes).execute()
}

/** When the end of the audit trail was last repaired: its readers take no older trail again. */
async function addRepaired(db: Kysely<JournalTables>): Promise<void> {
  await db.schema.alterTable('rollout_head').addColumn('repaired_ms', 'bigint').execute()
}
