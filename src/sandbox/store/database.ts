import type { Json } from '../json.ts'
import { createHash } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync, type SQLOutputValue } from 'node:sqlite'
import { AdapterError } from '../../errors.ts'

/**
 * The tables of the sandbox. Marks are clustered by learner and session, which is the order in which reads return marks. Ids that can be
 * computed from the seed are not stored, so a seeded mark takes about 25 bytes. `mark_history` contains replaced marks for the history of
 * changes, for stale reads and for a reset to the seeded state. `patch` contains the LearnerPersonals that clients changed.
 */
const schemaStatements = `
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE actor (no INTEGER PRIMARY KEY, external_id TEXT NOT NULL UNIQUE);
CREATE TABLE mark (
  learner INTEGER NOT NULL, session INTEGER NOT NULL, copy INTEGER NOT NULL, code INTEGER NOT NULL,
  flags INTEGER NOT NULL, minutes_late INTEGER, comment TEXT, recorded_on INTEGER NOT NULL, actor INTEGER NOT NULL,
  process TEXT, external_id TEXT, seq INTEGER NOT NULL,
  PRIMARY KEY (learner, session, copy)
) WITHOUT ROWID;
CREATE UNIQUE INDEX mark_external_id ON mark (external_id) WHERE external_id IS NOT NULL;
CREATE INDEX mark_seq ON mark (seq) WHERE seq > 0;
CREATE TABLE mark_history (
  replaced_by INTEGER NOT NULL, learner INTEGER NOT NULL, session INTEGER NOT NULL, copy INTEGER NOT NULL,
  code INTEGER NOT NULL, flags INTEGER NOT NULL, minutes_late INTEGER, comment TEXT, recorded_on INTEGER NOT NULL,
  actor INTEGER NOT NULL, process TEXT, external_id TEXT, seq INTEGER NOT NULL
);
CREATE INDEX mark_history_of ON mark_history (learner, session, copy, replaced_by);
CREATE TABLE effect (
  seq INTEGER PRIMARY KEY, face TEXT NOT NULL, learner INTEGER NOT NULL, session INTEGER NOT NULL,
  code INTEGER NOT NULL, flags INTEGER NOT NULL, minutes_late INTEGER, comment TEXT, external_id TEXT NOT NULL,
  written_at INTEGER NOT NULL
);
CREATE INDEX effect_written_at ON effect (written_at);
CREATE TABLE patch (learner INTEGER PRIMARY KEY, body TEXT NOT NULL);
`

/**
 * The version of the seeded content. Increment the version with each change of the content, so that old files are refused. A change of the
 * tables needs no new version, because a hash of the table definitions detects the change.
 */
const SEED_VERSION = '4'

/** An open database. `fresh` is true if the tables were just created and are still empty. */
interface OpenDatabase {
  readonly database: DatabaseSync
  readonly fresh: boolean
}

/** Opens a file, or creates its tables. Throws `ADP_USAGE` if the file cannot be opened, or has another or an incomplete seed. */
export function openDatabase(location: string, content: string): OpenDatabase {
  const { database, tables } = openFile(location)
  if (tables?.['n'] === 0) {
    database.exec(schemaStatements)
    return { database, fresh: true }
  }
  if (readFact(database, 'content') !== contentMark(content)) {
    database.close()
    throw new AdapterError(
      'ADP_USAGE',
      `The database file ${location} does not contain ${content}. The file was not changed. Remove the file, or choose another file with --db.`,
    )
  }
  return { database, fresh: false }
}

/** Opens the file, and creates its folder if needed. Runs a query, because only a query reveals that a file is not a database. */
function openFile(location: string): { database: DatabaseSync; tables: Record<string, unknown> | undefined } {
  let database: DatabaseSync | undefined
  try {
    if (location !== ':memory:') mkdirSync(dirname(location), { recursive: true })
    database = new DatabaseSync(location)
    // WAL without fsync is fast. The data survives a crash of the process, but a power failure may lose the last writes or damage the file.
    database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; PRAGMA temp_store = MEMORY')
    const tables = database.prepare("SELECT count(*) AS n FROM sqlite_schema WHERE name = 'meta'").get()
    return { database, tables }
  } catch (cause) {
    database?.close()
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new AdapterError(
      'ADP_USAGE',
      `The database file ${location} cannot be opened: ${why}. Nothing was written. Choose another file with --db.`,
      { cause },
    )
  }
}

/**
 * A fact about the seeded data. `content` identifies the content, and is stored once the seed is complete. `planned` is the day for which
 * the roster was created. `marked` is the last day with seeded marks.
 */
type SeedFact = 'content' | 'planned' | 'marked'

function readFact(database: DatabaseSync, name: SeedFact): string | undefined {
  const value = database.prepare('SELECT value FROM meta WHERE name = ?').get(name)?.['value']
  return typeof value === 'string' ? value : undefined
}

export function readDay(database: DatabaseSync, name: Exclude<SeedFact, 'content'>): number | undefined {
  const value = readFact(database, name)
  return value === undefined ? undefined : Number(value)
}

export function storeFact(database: DatabaseSync, name: SeedFact, value: string | number): void {
  database.prepare('INSERT OR REPLACE INTO meta VALUES (?, ?)').run(name, String(value))
}

/**
 * Runs `work` in the open transaction, or in a new transaction if none is open. An error rolls the new transaction back and is thrown
 * again.
 */
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

/** Returns the text that identifies the version and the content of a database file. */
export function contentMark(content: string): string {
  const tables = createHash('sha256').update(schemaStatements).digest('hex').slice(0, 12)
  return `${SEED_VERSION} ${tables} ${content}`
}

export type Row = Readonly<Record<string, SQLOutputValue>>

const wrongType = (column: string): AdapterError =>
  new AdapterError('ADP_INTERNAL', `The column ${column} holds a value of another type.`)

export function integer(row: Row, column: string): number {
  const value = row[column]
  if (typeof value !== 'number') throw wrongType(column)
  return value
}

export function integerOrNull(row: Row, column: string): number | null {
  return row[column] === null ? null : integer(row, column)
}

export function text(row: Row, column: string): string {
  const value = row[column]
  if (value instanceof Uint8Array) return Buffer.from(value).toString('utf16le')
  if (typeof value !== 'string') throw wrongType(column)
  return value
}

/**
 * Encodes text for storage. SQLite stores UTF-8, in which a lone surrogate would become U+FFFD. Text with a lone surrogate is therefore
 * stored as UTF-16 in a BLOB, which a TEXT column leaves unchanged.
 */
export function storedText(value: string | null): string | Buffer | null {
  return value === null || value.isWellFormed() ? value : Buffer.from(value, 'utf16le')
}

export function textOrNull(row: Row, column: string): string | null {
  return row[column] === null ? null : text(row, column)
}

export function createActors(database: DatabaseSync) {
  const select = database.prepare('SELECT no, external_id FROM actor ORDER BY no')
  let ids: string[] = []
  let numbers = new Map<string, number>()
  const reload = (): void => {
    const rows = select.all()
    ids = rows.map((row) => text(row, 'external_id'))
    numbers = new Map(rows.map((row) => [text(row, 'external_id'), integer(row, 'no')]))
  }
  reload()
  const insert = database.prepare('INSERT INTO actor VALUES (?, ?)')
  return {
    /** Returns the number of an actor, and assigns a number to a new actor. `externalId` is in lower case. */
    number: (externalId: string): number => {
      const known = numbers.get(externalId)
      if (known !== undefined) return known
      const number = ids.push(externalId)
      insert.run(number, externalId)
      numbers.set(externalId, number)
      return number
    },
    externalId: (number: number): string => ids[number - 1] ?? '',
    reload,
  }
}

/** Creates the store of the LearnerPersonals that clients changed. The store contains whole entities by the number of the learner. */
export function createPatches(database: DatabaseSync) {
  const select = database.prepare('SELECT learner, body FROM patch')
  const replace = database.prepare('INSERT OR REPLACE INTO patch VALUES (?, ?)')
  let version = 0
  const reload = (): void => {
    version += 1
  }
  return {
    all: (): ReadonlyMap<number, Record<string, Json>> =>
      new Map(
        select
          .all()
          .map((row) => [integer(row, 'learner'), JSON.parse(text(row, 'body')) as Record<string, Json>]),
      ),
    set: (learner: number, entity: Readonly<Record<string, Json>>): void => {
      replace.run(learner, JSON.stringify(entity))
      reload()
    },
    reset: (): void => {
      database.exec('DELETE FROM patch')
      reload()
    },
    /** Returns a number that changes with every write, so that callers know when their caches are outdated. */
    version: (): number => version,
    reload,
  }
}
