import { chmodSync } from 'node:fs'
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'

import { Kysely, PostgresDialect, type RawBuilder, sql, SqliteDialect } from 'kysely'

import { type JournalTables, sqlitePathOf } from '../../journal/index.ts'
import { connectPostgres } from '../../journal/postgres/connections.ts'
import { createSqliteFile } from '../../journal/sqlite/create-file.ts'
import { type Db, type Dialect, prepareTables } from './schema.ts'

/** Access to the tables of the console and, for reading, to the tables of the journal. */
export interface ConsoleDatabase {
  readonly db: Db
  readonly dialect: Dialect
  /** Runs `work` in a transaction that excludes every other writer of the console's tables. */
  readonly exclusively: <Result>(work: (db: Db) => Promise<Result>) => Promise<Result>
  /** Returns an SQL expression for the time of the database, by which leases are measured. */
  readonly nowMs: () => RawBuilder<number>
  readonly close: () => Promise<void>
}

/** One connection for background work, and one for the queries of pages. */
const CONNECTIONS = 2
const TIMEOUT_MS = 10_000
/** The page cache in KiB. Entries of hash indexes are spread over all pages of an index, so a small cache would miss. */
const CACHE_KIB = 16_384

/** The number of pages in the write-ahead log before a checkpoint. The same pages change repeatedly, so a rare checkpoint writes less. */
const CHECKPOINT_PAGES = 4_000
/** The maximum number of prepared statements to keep. Preparing most statements costs more than running them. */
const MAX_PREPARED = 200

export const consoleFileOf = (path: string): string => `${path}.console`

/**
 * Opens the tables of the console for an existing journal, and creates missing tables. With SQLite, the tables have their own file and the
 * journal is attached read-only, so that writes to the tables never lock the journal. Rejects with the error of the database driver.
 */
export async function openConsoleDatabase(url: string): Promise<ConsoleDatabase> {
  const path = sqlitePathOf(url)
  const database = path === undefined ? openPostgres(url) : openSqlite(path)
  try {
    await database.create()
    return database
  } catch (cause) {
    await database.close()
    throw cause
  }
}

function openSqlite(journal: string) {
  const path = consoleFileOf(journal)
  createSqliteFile(path)
  chmodSync(path, 0o600)
  const file = new DatabaseSync(path, { timeout: TIMEOUT_MS })
  // `synchronous = normal` may lose the last rows in a power failure. Rows of the index are then derived from the journal again.
  // `secure_delete` overwrites deleted content.
  file.exec(`pragma journal_mode = wal; pragma synchronous = normal; pragma secure_delete = on;
    pragma cache_size = -${CACHE_KIB}; pragma wal_autocheckpoint = ${CHECKPOINT_PAGES}; pragma journal_size_limit = 33554432`)
  file.prepare('attach ? as journal').run(`${pathToFileURL(journal).href}?mode=ro`)
  const prepared = new Map<string, StatementSync>()
  const db = new Kysely<JournalTables>({
    dialect: new SqliteDialect({
      database: {
        close: () => file.close(),
        prepare: (text) => {
          const statement = prepared.get(text) ?? file.prepare(text)
          if (prepared.size >= MAX_PREPARED) prepared.clear()
          prepared.set(text, statement)
          // The values come from the queries of this program, so the cast is safe.
          const valuesOf = (values: readonly unknown[]) => values as readonly SQLInputValue[]
          return {
            reader: statement.columns().length > 0,
            all: (values) => statement.all(...valuesOf(values)),
            run: (values) => statement.run(...valuesOf(values)),
            iterate: (values) => statement.iterate(...valuesOf(values)),
          }
        },
      },
    }),
  })
  // The transaction begins with a write, because a write takes the lock of the file.
  return toDatabase(db, 'sqlite', sql`pragma user_version = 1`)
}

function openPostgres(url: string) {
  // A query uses one processor. A commit does not wait for the disk, since rows of the index that a crash loses are derived from the
  // journal again.
  const settings = { max_parallel_workers_per_gather: 0, synchronous_commit: 'off' }
  const own = { timeoutMs: TIMEOUT_MS, connections: CONNECTIONS, name: 'markbridge console', settings }
  const pool = connectPostgres(url, own)
  const db = new Kysely<JournalTables>({ dialect: new PostgresDialect({ pool }) })
  return toDatabase(db, 'postgres', sql`select pg_advisory_xact_lock(7238519462)`)
}

const POSTGRES_NOW_MS = sql<number>`cast(extract(epoch from clock_timestamp()) * 1000 as bigint)`

/** Wraps a database. `lock` prevents two processes from creating the tables at the same time. */
const toDatabase = (db: Db, dialect: Dialect, lock: RawBuilder<unknown>) => ({
  ...{ db, dialect },
  nowMs: () => (dialect === 'sqlite' ? sql<number>`${Date.now()}` : POSTGRES_NOW_MS),
  create: () =>
    db.transaction().execute(async (at) => {
      await lock.execute(at)
      await prepareTables(at, dialect)
    }),
  exclusively: <Result>(work: (db: Db) => Promise<Result>) =>
    db.transaction().execute(async (at) => {
      await sql`update console_index set turn = turn + 1 where id = 1`.execute(at)
      return work(at)
    }),
  close: () => db.destroy(),
})
