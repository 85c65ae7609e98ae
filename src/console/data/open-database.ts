import { chmodSync, closeSync, openSync } from 'node:fs'
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'

import { Kysely, PostgresDialect, type RawBuilder, sql, SqliteDialect } from 'kysely'

import { type JournalTables, sqlitePathOf } from '../../journal/index.ts'
import { connectPostgres } from '../../journal/postgres/connections.ts'
import { type Db, type Dialect, prepareTables } from './schema.ts'

/** The tables of the console, and those of the journal beside them. */
export interface ConsoleDatabase {
  readonly db: Db
  readonly dialect: Dialect
  /** Runs work alone among those that write the tables of the console, as one transaction. */
  readonly exclusively: <Result>(work: (db: Db) => Promise<Result>) => Promise<Result>
  /** The time of the database, which leases are measured in; SQL. */
  readonly nowMs: () => RawBuilder<number>
  readonly close: () => Promise<void>
}

/** Connections to PostgreSQL: one that writes in the background, one that answers. */
const CONNECTIONS = 2
const TIMEOUT_MS = 10_000
/** Pages of the database in memory, KiB: entries in indexes of hashes are spread over all of their pages. */
const CACHE_KIB = 16_384

/** Pages that are written before they go from the log into the file: the same ones change again and again. */
const CHECKPOINT_PAGES = 4_000
/** Statements that stay prepared: preparing costs more than most of them. */
const MAX_PREPARED = 200

/** The file of an SQLite journal's console. */
export const consoleFileOf = (path: string): string => `${path}.console`

/**
 * Opens the tables of a journal that is there, and creates them where they are missing. With SQLite they are in a file of their own, and the
 * journal is attached read-only: whatever is written here holds no lock of the journal. Rejects as the drivers do.
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
  closeSync(openSync(path, 'a', 0o600))
  chmodSync(path, 0o600)
  const file = new DatabaseSync(path, { timeout: TIMEOUT_MS })
  // Derived from the journal: what a crash loses is written anew. What is deleted is overwritten.
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
          // What Kysely binds comes from this program.
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
  // What is written first takes the lock of the file.
  return toDatabase(db, 'sqlite', sql`pragma user_version = 1`)
}

function openPostgres(url: string) {
  // A question takes one processor, and a commit waits for no disk: what a crash loses is written anew.
  const settings = { max_parallel_workers_per_gather: 0, synchronous_commit: 'off' }
  const own = { timeoutMs: TIMEOUT_MS, connections: CONNECTIONS, name: 'markbridge console', settings }
  const pool = connectPostgres(url, own)
  const db = new Kysely<JournalTables>({ dialect: new PostgresDialect({ pool }) })
  return toDatabase(db, 'postgres', sql`select pg_advisory_xact_lock(7238519462)`)
}

const POSTGRES_NOW_MS = sql<number>`cast(extract(epoch from clock_timestamp()) * 1000 as bigint)`

/** `lock` keeps others from creating the tables at the same time. */
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
