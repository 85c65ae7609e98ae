import { existsSync } from 'node:fs'

import type { Kysely, RawBuilder } from 'kysely'

import { backgroundClock } from '../clock.ts'
import { AdapterError } from '../errors.ts'
import { isPostgresAddress, JOURNAL_ADDRESS } from '../http/address.ts'
import { type Availability, createAvailability } from './availability.ts'
import { findContradiction, keepPlace, readHighWater } from './find-contradiction.ts'
import type { HighWaterMark } from './high-water.ts'
import { checkKeys, type MacKey, openMacKey } from './keys.ts'
import { createPostgresStore } from './postgres/store.ts'
import {
  checkVersion,
  type Dialect,
  findUnreadable,
  type JournalTables,
  migrate,
  readMeta,
  readSalt,
  stateOf,
} from './schema.ts'
import type { JournalKey } from './seal.ts'
import { createSqliteStore } from './sqlite/store.ts'
import type { Store } from './store.ts'
import { damagedStore, damageOf, unopenedStore } from './store-error.ts'

interface StoreOptions {
  /** How long `begin` waits in all: no single try may take longer. */
  readonly timeoutMs: number
  readonly wallMs: () => number
  /** True: an SQLite file is opened only where there is one. */
  readonly existing?: boolean
  /** Where a PostgreSQL journal keeps its mark; an SQLite file has it beside it. */
  readonly markFile?: string | undefined
}

/** The file that an address names; undefined: it is none of SQLite. */
export const sqlitePathOf = (url: string): string | undefined => /^sqlite:(?:\/\/(?=\/))?(.+)$/.exec(url)?.[1]

/** Creates the store that an address names; nothing is opened yet. Error: `ADP_CONFIGURATION`. */
export function openStore(url: string, options: StoreOptions): Store {
  const { wallMs, existing = false, markFile } = options
  const timeoutMs = Math.ceil(options.timeoutMs / 2)
  const path = sqlitePathOf(url)
  if (path !== undefined && path !== ':memory:')
    return createSqliteStore({ path, existing, busyMs: timeoutMs, wallMs })
  if (isPostgresAddress(url)) return createPostgresStore({ url, timeoutMs, markFile })
  throw new AdapterError(
    'ADP_CONFIGURATION',
    `The address of the journal ${JOURNAL_ADDRESS}. Nothing was opened. Correct journal.url or --journal.`,
  )
}

/** What a journal is opened with. */
interface Unsealed {
  readonly keys: readonly JournalKey[]
  /** With keys: rows that are not encrypted are read. */
  readonly plaintextAccepted: boolean
}

/** The facts of a journal whose tables are up to date. */
interface OpenedTables {
  readonly salt: Uint8Array
  readonly mark: HighWaterMark
  readonly macKey: MacKey
  /** Milliseconds since the epoch; 0: never. */
  readonly readBackUntilMs: number
  /** The age of the journal when what it may have lost was accepted, ms; undefined: nothing was. */
  readonly readBackFromAgeMs: number | undefined
}

/**
 * Checks that the journal is the one of its mark and of these keys, and brings its tables up to date. Errors: `ADP_JOURNAL_DAMAGED` with
 * nothing changed; those of `migrate`, `checkKeys` and `openMacKey`.
 */
export async function openTables(store: Store, sealing: Unsealed): Promise<OpenedTables> {
  await expectUsable(store)
  return store.exclusively((db) => bringUpToDate(store, db, sealing))
}

async function expectUsable(store: Store): Promise<void> {
  expectSound(store, await store.findDamage())
  expectSound(store, (await findUnreadable(store.db, store.dialect))?.damage)
}

async function bringUpToDate(
  store: Store,
  db: Kysely<JournalTables>,
  { keys, plaintextAccepted }: Unsealed,
): Promise<OpenedTables> {
  expectSound(store, await findContradiction({ ...store, db }))
  await migrate(db, store.dialect)
  await keepPlace(db, store.dialect, { anew: false })
  const salt = await readSalt(db)
  await checkKeys(db, keys, salt, plaintextAccepted)
  const fromAge = await readMeta(db, 'read_back_from_age')
  const mark = await readHighWater(db, store.dialect)
  return {
    salt,
    mark: mark ?? { identity: '', commits: new Map() },
    macKey: await openMacKey(db, keys, salt, { forInstance: true }),
    readBackUntilMs: Number((await readMeta(db, 'read_back_until')) ?? 0),
    readBackFromAgeMs: fromAge === undefined ? undefined : Number(fromAge),
  }
}

/**
 * Asks all that a start asks of a journal, also while it is served, and changes nothing: the tables are brought up to date in a transaction that
 * is rolled back. Those of an earlier version are
 * only read, since their change may take long; where there are none, serve creates them. Errors: those of `openJournal`.
 */
export async function tryOpening({
  url,
  markFile,
  ...sealing
}: DatabaseOptions & Unsealed): Promise<'current' | 'earlier' | 'new'> {
  const store = openStore(url, { timeoutMs: TIMEOUT_MS, wallMs: Date.now, existing: true, markFile })
  const tried = new AdapterError('ADP_INTERNAL', 'The start was tried.')
  try {
    const path = sqlitePathOf(url)
    if (path !== undefined && !existsSync(path)) {
      expectSound(store, await store.findDamage())
      return 'new'
    }
    await expectUsable(store)
    const state = await stateOf(store.db, store.dialect)
    if (state === 'earlier') return state
    await store
      .exclusively(async (db) => {
        await bringUpToDate(store, db, sealing)
        throw tried
      })
      .catch((cause: unknown) => {
        if (cause !== tried) throw cause
      })
    return state
  } catch (error) {
    throw toOpeningError(store, error)
  } finally {
    await store.close()
  }
}

function expectSound({ place }: Store, damage: string | undefined): void {
  if (damage !== undefined) throw damagedStore(place, damage)
}

/** The database of a journal for what else is kept in it. */
export interface JournalDatabase {
  readonly db: Kysely<JournalTables>
  readonly dialect: Dialect
  readonly macKey: MacKey
  /** The time of the database, which leases are measured in, as SQL; ms since the epoch. */
  readonly nowMs: () => RawBuilder<number>
  /**
   * Runs a question to the database. Errors: `ADP_JOURNAL_UNAVAILABLE`; `ADP_JOURNAL_DAMAGED`; `ADP_INTERNAL` for a statement that the
   * database does not understand.
   */
  ask<Result>(question: () => Promise<Result>): Promise<Result>
}

/** A database that was opened by itself. */
interface OpenedDatabase extends JournalDatabase {
  close(): Promise<void>
}

export interface DatabaseOptions {
  readonly url: string
  /** Those of the journal. */
  readonly keys?: readonly JournalKey[]
  readonly markFile?: string | undefined
}

/** How long one question may take. */
const TIMEOUT_MS = 10_000

/**
 * Opens the database of a journal that is there, also while it is served: without a lease and without changing its tables. Errors:
 * `ADP_CONFIGURATION` for an address that is none, a journal of another version, or a key that is missing; `ADP_JOURNAL_UNAVAILABLE`;
 * `ADP_JOURNAL_DAMAGED`.
 */
export function openJournalDatabase({ url, keys = [], markFile }: DatabaseOptions): Promise<OpenedDatabase> {
  return openExisting(url, markFile, async (store, ask) => {
    const { db, dialect, exclusively } = store
    const salt = await readSalt(db)
    const macKey = await exclusively((at) => openMacKey(at, keys, salt, { forInstance: false }))
    return { db, dialect, macKey, nowMs: () => store.nowMs(), ask, close: () => store.close() }
  })
}

/** Opens what uses the store of a journal that is there; it closes the store. Errors: those of `openJournalDatabase`. */
export async function openExisting<Opened>(
  url: string,
  markFile: string | undefined,
  open: (store: Store, ask: Availability['ask']) => Opened | Promise<Opened>,
): Promise<Opened> {
  const store = openStore(url, { timeoutMs: TIMEOUT_MS, wallMs: Date.now, existing: true, markFile })
  try {
    await expectUsable(store)
    expectSound(store, await findContradiction(store))
    await checkVersion(store.db, store.dialect)
    return await open(store, createAvailability(store, backgroundClock, () => undefined).ask)
  } catch (error) {
    await store.close()
    throw toOpeningError(store, error)
  }
}

/** The error of a journal that cannot be opened, from any error that opening it ends with. */
export function toOpeningError(store: Store, error: unknown): AdapterError {
  const damage = damageOf(error)
  if (damage !== undefined) return damagedStore(store.place, damage, error)
  if (error instanceof AdapterError) return error
  const storeError = store.toStoreError(error)
  if (storeError.kind === 'damaged') return damagedStore(store.place, storeError.message, error)
  return unopenedStore(store.place, storeError, error)
}
