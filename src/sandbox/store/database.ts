import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { AdapterError } from '../../errors.ts'
import { schemaStatements, schemaVersion } from './schema.ts'

/** A database that is open, and whether its tables were made just now and await the seed. */
export interface OpenDatabase {
  readonly database: DatabaseSync
  readonly fresh: boolean
}

/**
 * Opens the sandbox's SQLite database and makes its tables where the file is new.
 * `content` describes the seed of the database; a file that cannot be opened, is seeded otherwise, or half seeded, is refused with `ADP_USAGE`.
 */
export function openDatabase(location: string, content: string): OpenDatabase {
  const { database, tables } = open(location)
  if (tables?.['n'] === 0) {
    database.exec(schemaStatements)
    return { database, fresh: true }
  }
  const seeded = database.prepare("SELECT value FROM meta WHERE name = 'content'").get()?.['value']
  if (seeded !== contentMark(content)) {
    database.close()
    throw new AdapterError(
      'ADP_USAGE',
      `The database file ${location} holds other data than ${content}. Remove the file or name another.`,
    )
  }
  return { database, fresh: false }
}

/** Opens the file, creates its folder if needed, and reads from it: only a read shows that a file is not a database. */
function open(location: string): { database: DatabaseSync; tables: Record<string, unknown> | undefined } {
  let database: DatabaseSync | undefined
  try {
    if (location !== ':memory:') mkdirSync(dirname(location), { recursive: true })
    database = new DatabaseSync(location)
    // A stand-in may lose its last writes with the machine's power, never with its own process: WAL without fsync.
    database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; PRAGMA temp_store = MEMORY')
    const tables = database.prepare("SELECT count(*) AS n FROM sqlite_schema WHERE name = 'meta'").get()
    return { database, tables }
  } catch (cause) {
    database?.close()
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new AdapterError(
      'ADP_USAGE',
      `The database file ${location} cannot be opened: ${why}. Name another with --db.`,
      { cause },
    )
  }
}

/** Records that the seed is complete. */
export function markSeeded(database: DatabaseSync, content: string): void {
  database.prepare("INSERT INTO meta VALUES ('content', ?)").run(contentMark(content))
}

/** The seed of the database: the day for which it was planned, and the last day with marks. */
export type DayName = 'planned' | 'marked'

/** A day that was kept with `keepDay`; undefined: none. */
export function readDay(database: DatabaseSync, name: DayName): number | undefined {
  const value = database.prepare('SELECT value FROM meta WHERE name = ?').get(name)?.['value']
  return typeof value === 'string' ? Number(value) : undefined
}

/** Keeps the number of a day. */
export function keepDay(database: DatabaseSync, name: DayName, day: number): void {
  database.prepare('INSERT OR REPLACE INTO meta VALUES (?, ?)').run(name, String(day))
}

/** Runs `work` as one transaction, or as part of the one that is open; any error rolls it back and is thrown to the caller. */
export function transact<Result>(database: DatabaseSync, work: () => Result): Result {
  if (database.isTransaction) return work()
  database.exec('BEGIN')
  try {
    const result = work()
    database.exec('COMMIT')
    return result
  } catch (error) {
    database.exec('ROLLBACK')
    throw error
  }
}

const contentMark = (content: string): string => `${schemaVersion} ${content}`
