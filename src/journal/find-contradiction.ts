import { type Kysely, sql } from 'kysely'

import { type HighWaterMark, type HighWaterFilePlace, missingOf, readMark, totalOf } from './high-water.ts'
import { type Dialect, hasTables, type JournalTables, readMeta, writeMeta } from './schema.ts'

/**
 * Returns how the journal contradicts its high-water mark, or `undefined` if the two agree. The mark may lag behind the journal, because
 * the mark is written after the commit and not synced.
 */
export async function findContradiction({
  db,
  dialect,
  highWaterFile,
}: {
  readonly db: Kysely<JournalTables>
  readonly dialect: Dialect
  readonly highWaterFile: HighWaterFilePlace | undefined
}): Promise<string | undefined> {
  const found = highWaterFile === undefined ? undefined : await compareMark(db, dialect, highWaterFile)
  return found ?? findMovedDatabase(db, dialect)
}

async function compareMark(
  db: Kysely<JournalTables>,
  dialect: Dialect,
  { path, required }: HighWaterFilePlace,
): Promise<string | undefined> {
  // Reads the mark before the tables. Commits made between the two reads are then only in the tables, never only in the mark.
  const before = readMark(path)
  const stored = await readHighWater(db, dialect)
  const mark = before === 'missing' ? readMark(path) : before
  if (mark === 'unreadable') return `its high-water file ${path} cannot be read`
  if (mark === 'missing') {
    const isNew = stored === undefined || totalOf(stored.commits) === 0
    return isNew || !required
      ? undefined
      : `its high-water file ${path} is missing, so an old copy cannot be distinguished from the journal`
  }
  const count = `its high-water file ${path} counts ${totalOf(mark.commits)} commit(s)`
  if (stored === undefined) return `it is empty, and ${count}`
  if (stored.identity !== mark.identity)
    return `its identity differs from the identity in its high-water file ${path}`
  const missing = missingOf(stored.commits, mark.commits)
  if (missing === 0) return undefined
  return `it is an old copy: it contains ${totalOf(stored.commits)} commit(s), and ${count}, so ${missing} are missing`
}

/** Returns the high-water mark of the tables, or `undefined` if the database has no tables. */
export async function readHighWater(
  db: Kysely<JournalTables>,
  dialect: Dialect,
): Promise<HighWaterMark | undefined> {
  if (!(await hasTables(db, dialect))) return undefined
  const { rows } = await sql<{
    slot: number
    commits: number
  }>`select slot, commits from journal_commits`.execute(db)
  return {
    identity: (await readMeta(db, 'identity')) ?? '',
    commits: new Map(rows.map(({ slot, commits }) => [slot, commits])),
  }
}

/** The entry of `journal_meta` that identifies the PostgreSQL database by its object ids, which a dump does not restore. */
const PLACE = 'database'

async function readPlace(db: Kysely<JournalTables>): Promise<string> {
  const { rows } = await sql<{ place: string }>`
    select oid || '/' || 'journal_meta'::regclass::oid as place from pg_database
    where datname = current_database()`.execute(db)
  return rows[0]?.place ?? ''
}

async function findMovedDatabase(db: Kysely<JournalTables>, dialect: Dialect): Promise<string | undefined> {
  if (dialect === 'sqlite' || !(await hasTables(db, dialect))) return undefined
  const stored = await readMeta(db, PLACE)
  if (stored === undefined || stored === (await readPlace(db))) return undefined
  return 'it was restored from a dump or copied from another database, so commits that were made since are missing'
}

/** Stores which PostgreSQL database contains the journal. Overwrites a stored entry only if `anew` is true. */
export async function storePlace(
  db: Kysely<JournalTables>,
  dialect: Dialect,
  { anew }: { readonly anew: boolean },
): Promise<void> {
  if (dialect === 'sqlite' || (!anew && (await readMeta(db, PLACE)) !== undefined)) return
  await writeMeta(db, PLACE, await readPlace(db))
}
