import { type Kysely, type RawBuilder, sql } from 'kysely'

import { type JournalTables, readMeta } from '../../journal/index.ts'

export type Dialect = 'sqlite' | 'postgres'

/** The type of a database. Queries are written in SQL, so the types of the tables of the console are not declared. */
export type Db = Kysely<JournalTables>

/** The version of the tables. Tables of another version are derived from the journal again. Only timelines and counts are lost. */
const VERSION = '4'

/**
 * Returns the statements that create the tables. The tables contain keyed hashes in place of the ids of learners, events and marks. Times
 * are in milliseconds since the epoch.
 */
const tables = (dialect: Dialect): readonly string[] => [
  // Batches up to `last_batch` have a row in `console_batches`. Every writer changes `turn`, which serves as the lock of all writers.
  // `holder` has the lease on the background work until `until_ms`.
  `create table console_index (id integer primary key, version text not null, journal text not null, last_batch bigint not null,
     turn bigint not null, holder text not null, until_ms bigint not null, swept bigint not null, lost_steps bigint not null)`,
  // One row for each batch of the journal. `indexed` is 0 before the batch is indexed, 1 once its readable records are in
  // `console_records`, and 2 if only newer marks are missing there. `confirmed` is the number of confirmed records when the batch was
  // indexed. `unreadable` is the reason why a request cannot be read. `boundary` is the text of the client.
  `create table console_batches (batch bigint primary key, boundary text, confirmed integer not null default 0,
     indexed integer not null default 0, unreadable text)`,
  `create index console_batches_boundary on console_batches (boundary) where boundary is not null`,
  `create index console_batches_todo on console_batches (batch) where indexed <> 1`,
  `create index console_batches_unreadable on console_batches (unreadable) where unreadable is not null`,
  `create table console_records (batch bigint not null, position integer not null, learner bigint, event bigint, mark bigint,
     content_id text, primary key (batch, position)) ${dialect === 'sqlite' ? 'without rowid' : ''}`,
  ...['learner', 'event', 'mark', 'content_id'].map(
    (column) =>
      `create index console_records_${column} on console_records (${column}, batch, position) where ${column} is not null`,
  ),
  // `positions` is a JSON array of ranges of positions.
  `create table console_steps (batch bigint not null, at_ms bigint not null, kind text not null, instance bigint,
     positions text not null, reason text)`,
  `create index console_steps_batch on console_steps (batch, at_ms)`,
  // Counts by name, for each interval of `grain` seconds that begins at `at` (in seconds).
  `create table console_counts (grain integer not null, at bigint not null, name text not null, count bigint not null,
     primary key (grain, at, name)) ${dialect === 'sqlite' ? 'without rowid' : ''}`,
  `create table console_checks (partner text primary key, holds integer not null, checked_ms bigint not null)`,
]

const names = ['index', 'batches', 'records', 'steps', 'counts', 'checks']

/**
 * Creates the tables of the console, and first drops tables of another version or another journal. The caller holds a lock, so that no
 * other process does the same meanwhile.
 */
export async function prepareTables(db: Db, dialect: Dialect): Promise<void> {
  const journal = (await readMeta(db, 'identity')) ?? ''
  const isThere =
    dialect === 'sqlite'
      ? sql`select 1 from main.sqlite_master where name = 'console_index'`
      : sql`select 1 where to_regclass('console_index') is not null`
  if ((await isThere.execute(db)).rows.length > 0) {
    const fit = sql`select 1 from console_index where version = ${VERSION} and journal = ${journal}
      and last_batch <= (select max(last_batch) from journal_commits)`
    if ((await fit.execute(db)).rows.length > 0) return
  }
  for (const name of names) await sql.raw(`drop table if exists console_${name}`).execute(db)
  for (const statement of tables(dialect)) await sql.raw(statement).execute(db)
  await sql`insert into console_index (id, version, journal, last_batch, turn, holder, until_ms, swept, lost_steps)
    values (1, ${VERSION}, ${journal}, 0, 0, '', 0, 0, 0)`.execute(db)
}

/** Runs a statement and returns its rows, with `undefined` in place of NULL. */
export const rowsOf =
  <Row extends object>(db: Db) =>
  async (...statement: Parameters<typeof sql>): Promise<readonly Row[]> => {
    const { rows } = await sql<Row>(...statement).execute(db)
    for (const row of rows)
      for (const [name, value] of Object.entries(row)) if (value === null) Reflect.set(row, name, undefined)
    return rows
  }

type Columns = Readonly<Record<string, 'bigint' | 'integer' | 'text'>>

export type RowOf<Own extends Columns> = { readonly [Name in keyof Own]: number | string | null | undefined }

/** Formats rows as the table `u` of a statement. All rows are passed as a single parameter. */
export function tableOf<const Own extends Columns>(
  dialect: Dialect,
  columns: Own,
  rows: readonly RowOf<Own>[],
): RawBuilder<unknown> {
  const json = JSON.stringify(rows)
  if (dialect === 'postgres') {
    const typed = Object.entries(columns).map(([name, type]) => `${name} ${type}`)
    return sql`json_to_recordset(${json}::json) as u (${sql.raw(typed.join())})`
  }
  const read = Object.keys(columns).map((name) => `value ->> '${name}' as ${name}`)
  return sql`(select ${sql.raw(read.join())} from json_each(${json})) as u`
}
