import { statSync } from 'node:fs'

import { type Kysely, sql } from 'kysely'

import type { Dialect } from '../schema/migrations.ts'
import type { JournalTables } from '../schema/tables.ts'
import { type CommitCounts, missingOf, totalOf } from './commit-counts.ts'
import { type FoundMark, type HighWaterMark, readMark } from './mark-file.ts'

/** How far the tables have come. `empty`: there are none; `unmarked`: a version that kept no mark made them. */
export type Kept = HighWaterMark | 'empty' | 'unmarked'

/** A mark to set a journal against. */
export interface MarkPlace {
  readonly path: string
  /** True: a journal with commits always has it, since it lies beside the database. */
  readonly required: boolean
}

/**
 * What contradicts that this is the journal that its mark was written for; undefined: nothing does. A mark that lags is fine: it
 * is written after the commit and not synced.
 */
export async function findContradiction(
  db: Kysely<JournalTables>,
  dialect: Dialect,
  place: MarkPlace | undefined,
): Promise<string | undefined> {
  const found = place === undefined ? undefined : await compareMark(db, dialect, place)
  return found ?? findMovedDatabase(db, dialect)
}

async function compareMark(
  db: Kysely<JournalTables>,
  dialect: Dialect,
  place: MarkPlace,
): Promise<string | undefined> {
  // In this order: commits that are made meanwhile are in the tables, never in the mark alone.
  const before = readMark(place.path)
  const kept = await readKept(db, dialect)
  const mark = before === 'missing' ? readMark(place.path) : before
  return contradictionOf(mark, kept, place)
}

function contradictionOf(mark: FoundMark, kept: Kept, { path, required }: MarkPlace): string | undefined {
  if (mark === 'unreadable') return `its mark file ${path} cannot be read`
  if (mark === 'missing') {
    const isNew = kept === 'empty' || kept === 'unmarked' || totalOf(kept.commits) === 0
    return isNew || !required
      ? undefined
      : `its mark file ${path} is missing, so an old copy cannot be distinguished from the journal`
  }
  const count = `its mark file ${path} counts ${totalOf(mark.commits)} commit(s)`
  if (kept === 'empty') return `it is empty, and ${count}`
  if (kept === 'unmarked') return `it is a copy that an older version of Markbridge left, and ${count}`
  if (kept.identity !== mark.identity) return `it is another journal than the one of its mark file ${path}`
  const missing = missingOf(kept.commits, mark.commits)
  if (missing === 0) return undefined
  return `it is an old copy with ${totalOf(kept.commits)} commit(s), and ${count}, ${missing} of which it lacks`
}

/** The name in `journal_meta`: which database of PostgreSQL the journal is in, by the numbers that a dump does not carry along. */
const PLACE = 'database'

const readPlace = async (db: Kysely<JournalTables>): Promise<string> => {
  const { rows } = await sql<{ place: string }>`
    select oid || '/' || 'journal_meta'::regclass::oid as place from pg_database where datname = current_database()`.execute(
    db,
  )
  return rows[0]?.place ?? ''
}

async function findMovedDatabase(db: Kysely<JournalTables>, dialect: Dialect): Promise<string | undefined> {
  if (dialect === 'sqlite' || !(await hasTable(db, dialect, 'journal_meta'))) return undefined
  const kept = await db
    .selectFrom('journal_meta')
    .select('value')
    .where('name', '=', PLACE)
    .executeTakeFirst()
  if (kept === undefined || kept.value === (await readPlace(db))) return undefined
  return 'it was restored from a dump or copied from another database, so commits that were made since are missing'
}

/** Keeps in which database of PostgreSQL the journal is; the first time, or anew. */
export async function keepPlace(
  db: Kysely<JournalTables>,
  dialect: Dialect,
  { anew }: { readonly anew: boolean },
): Promise<void> {
  if (dialect === 'sqlite') return
  const value = await readPlace(db)
  await db
    .insertInto('journal_meta')
    .values({ name: PLACE, value })
    .onConflict((conflict) =>
      anew ? conflict.column('name').doUpdateSet({ value }) : conflict.column('name').doNothing(),
    )
    .execute()
}

/**
 * What is wrong with the file of an SQLite journal before it is opened, which would create it: it is gone or empty, and its mark
 * says that it was not. Undefined: nothing that can be seen from outside.
 */
export function findMissingFile(path: string, mark: string): string | undefined {
  if (readMark(mark) === 'missing') return undefined
  const size = statSync(path, { throwIfNoEntry: false })?.size
  if (size === undefined) return `the file is gone, and its mark file ${mark} is there`
  return size === 0 ? `the file is empty, and its mark file ${mark} is there` : undefined
}

/** Reads how far the tables have come. */
export async function readKept(db: Kysely<JournalTables>, dialect: Dialect): Promise<Kept> {
  if (!(await hasTable(db, dialect, 'journal_meta'))) return 'empty'
  if (!(await hasTable(db, dialect, 'journal_commits'))) return 'unmarked'
  const identity = await db
    .selectFrom('journal_meta')
    .select('value')
    .where('name', '=', 'identity')
    .executeTakeFirst()
  const rows = await db.selectFrom('journal_commits').selectAll().execute()
  const commits: CommitCounts = new Map(rows.map((row) => [row.slot, row.commits]))
  return { identity: identity?.value ?? '', commits }
}

async function hasTable(db: Kysely<JournalTables>, dialect: Dialect, name: string): Promise<boolean> {
  const query =
    dialect === 'sqlite'
      ? sql<{
          found: unknown
        }>`select name as found from sqlite_master where type = 'table' and name = ${name}`
      : sql<{ found: unknown }>`select to_regclass(${name}) as found`
  const { rows } = await query.execute(db)
  return rows[0] !== undefined && rows[0].found !== null
}
