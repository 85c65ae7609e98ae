import { type Kysely, sql, type Transaction } from 'kysely'

import { AdapterError } from '../../errors.ts'
import { keepPlace, readKept } from '../high-water/check-mark.ts'
import type { HighWaterMark } from '../high-water/mark-file.ts'
import { type Dialect, migrations } from './migrations.ts'
import type { JournalTables } from './tables.ts'

/** Runs work alone: no other instance migrates, begins or reopens meanwhile. */
export type Exclusively = <Result>(
  work: (transaction: Transaction<JournalTables>) => Promise<Result>,
) => Promise<Result>

/** The facts of a journal whose tables are up to date. */
export interface OpenedTables {
  readonly salt: Uint8Array
  readonly mark: HighWaterMark
  /** Milliseconds since the epoch; 0: never. */
  readonly readBackUntilMs: number
  /** The age of the journal when what it may have lost was accepted, ms; undefined: nothing was. */
  readonly readBackFromAgeMs: number | undefined
}

/** The options with which the tables are opened. */
export interface MigrateOptions {
  readonly newSalt: () => Uint8Array
  /** A batch that came before may be sent again until then; ms since the epoch. */
  readonly replayUntilMs: number
  /** Looks at the tables before anything is changed. */
  readonly check: (db: Kysely<JournalTables>) => Promise<void>
}

/**
 * Creates the tables or brings them up to date, in one transaction. Error:
 * `ADP_CONFIGURATION` for tables of a newer version: nothing is changed then.
 */
export async function migrate(
  exclusively: Exclusively,
  dialect: Dialect,
  { newSalt, replayUntilMs, check }: MigrateOptions,
): Promise<OpenedTables> {
  return exclusively(async (db) => {
    await check(db)
    await db.schema
      .createTable('journal_meta')
      .ifNotExists()
      .addColumn('name', 'text', (column) => column.primaryKey())
      .addColumn('value', 'text', (column) => column.notNull())
      .execute()
    const version = Number((await readMeta(db, 'schema')) ?? 0)
    if (version > migrations.length) throw newerVersion(version)
    for (const step of migrations.slice(version)) await step(db, { dialect, replayUntilMs })
    await writeMeta(db, 'schema', String(migrations.length))
    await keepPlace(db, dialect, { anew: false })
    const kept = await readKept(db, dialect)
    if (typeof kept === 'string') throw new AdapterError('ADP_INTERNAL', 'The journal has no commits table.')
    return {
      salt: await saltOf(db, newSalt),
      mark: kept,
      readBackUntilMs: Number((await readMeta(db, 'read_back_until')) ?? 0),
      readBackFromAgeMs: await readNumber(db, 'read_back_from_age'),
    }
  })
}

async function saltOf(db: Kysely<JournalTables>, newSalt: () => Uint8Array): Promise<Uint8Array> {
  const salt = await readMeta(db, 'salt')
  if (salt !== undefined) return Buffer.from(salt, 'hex')
  const fresh = newSalt()
  await writeMeta(db, 'salt', Buffer.from(fresh).toString('hex'))
  return fresh
}

/** Sees to it that the tables are those that this program knows. Error: `ADP_CONFIGURATION`. */
export async function checkVersion(db: Kysely<JournalTables>): Promise<void> {
  const version = Number((await readMeta(db, 'schema')) ?? 0)
  if (version > migrations.length) throw newerVersion(version)
  if (version === migrations.length) return
  throw new AdapterError(
    'ADP_CONFIGURATION',
    `The journal has version ${version}, and this program expects ${migrations.length}: serve it once, which brings it up to date.`,
  )
}

const newerVersion = (version: number): AdapterError =>
  new AdapterError(
    'ADP_CONFIGURATION',
    `The journal has version ${version} and this program knows up to ${migrations.length}: a newer one has ` +
      'changed it. Start that version again, or name another journal.',
  )

export async function readMeta(db: Kysely<JournalTables>, name: string): Promise<string | undefined> {
  const row = await db.selectFrom('journal_meta').select('value').where('name', '=', name).executeTakeFirst()
  return row?.value
}

async function readNumber(db: Kysely<JournalTables>, name: string): Promise<number | undefined> {
  const text = await readMeta(db, name)
  return text === undefined ? undefined : Number(text)
}

export async function writeMeta(db: Kysely<JournalTables>, name: string, value: string): Promise<void> {
  await db
    .insertInto('journal_meta')
    .values({ name, value })
    .onConflict((conflict) => conflict.column('name').doUpdateSet({ value: sql`excluded.value` }))
    .execute()
}
