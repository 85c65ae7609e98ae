import { existsSync } from 'node:fs'

import type { Kysely, RawBuilder } from 'kysely'

import { backgroundClock } from '../clock.ts'
import { AdapterError } from '../errors.ts'
import { isPostgresAddress, JOURNAL_ADDRESS } from '../http/address.ts'
import { type Availability, createAvailability } from './availability.ts'
import { findContradiction, readHighWater, storePlace } from './find-contradiction.ts'
import type { HighWaterMark } from './high-water.ts'
import { checkKeys, openSecret } from './keys.ts'
import { createPostgresStore } from './postgres/store.ts'
import {
  createTables,
  type Dialect,
  findUnreadable,
  hasOwnTables,
  hasTables,
  type JournalTables,
  readMeta,
  readSalt,
} from './schema.ts'
import type { JournalKey } from './seal.ts'
import { createSqliteStore } from './sqlite/store.ts'
import type { Store } from './store.ts'
import { damagedStore, damageOf, unopenedStore } from './store-error.ts'

interface StoreOptions {
  /** How long a caller waits in total, in milliseconds. A connection or a statement may take half of this time, which leaves time for a retry. */
  readonly timeoutMs: number
  readonly wallMs: () => number
  /** True if a missing SQLite file must not be created. */
  readonly existing?: boolean
  /** The high-water file of a PostgreSQL journal. An SQLite journal has its high-water file beside its database. */
  readonly highWaterFile?: string | undefined
}

export const sqlitePathOf = (url: string): string | undefined => /^sqlite:(?:\/\/(?=\/))?(.+)$/.exec(url)?.[1]

/** Creates the store for a URL without opening it. Throws `ADP_CONFIGURATION` for an invalid URL. */
export function openStore(url: string, options: StoreOptions): Store {
  const { wallMs, existing = false, highWaterFile } = options
  const timeoutMs = Math.ceil(options.timeoutMs / 2)
  const path = sqlitePathOf(url)
  if (path !== undefined && path !== ':memory:')
    return createSqliteStore({ path, existing, busyMs: timeoutMs, wallMs })
  if (isPostgresAddress(url)) return createPostgresStore({ url, timeoutMs, highWaterFile })
  throw new AdapterError(
    'ADP_CONFIGURATION',
    `The address of the journal ${JOURNAL_ADDRESS}. Nothing was opened. Correct journal.url or --journal.`,
  )
}

interface Unsealed {
  readonly keys: readonly JournalKey[]
  readonly plaintextAccepted: boolean
}

interface OpenedTables {
  readonly salt: Uint8Array
  readonly mark: HighWaterMark
  readonly secret: Uint8Array
  /** The end of the read-back period in milliseconds since the epoch, or 0 if the journal was never adopted. */
  readonly readBackUntilMs: number
  /** The age of the journal in milliseconds when an operator last accepted a loss, or `undefined` if no loss was accepted. */
  readonly readBackFromAgeMs: number | undefined
}

/**
 * Checks that the journal matches its high-water mark and these keys, and creates its tables if there are none. If the journal is damaged,
 * throws `ADP_JOURNAL_DAMAGED` without changing anything. Also throws the errors of `createTables`, `checkKeys` and `openSecret`.
 */
export async function openTables(store: Store, sealing: Unsealed): Promise<OpenedTables> {
  await expectUsable(store)
  return store.exclusively((db) => checkTables(store, db, sealing))
}

async function expectUsable(store: Store): Promise<void> {
  expectSound(store, await store.findDamage())
  expectSound(store, (await findUnreadable(store.db, store.dialect))?.damage)
}

async function checkTables(
  store: Store,
  db: Kysely<JournalTables>,
  { keys, plaintextAccepted }: Unsealed,
): Promise<OpenedTables> {
  expectSound(store, await findContradiction({ ...store, db }))
  await createTables(db, store.dialect)
  await storePlace(db, store.dialect, { anew: false })
  const salt = await readSalt(db)
  await checkKeys(db, keys, salt, plaintextAccepted)
  const fromAge = await readMeta(db, 'read_back_from_age')
  const mark = await readHighWater(db, store.dialect)
  return {
    salt,
    mark: mark ?? { identity: '', commits: new Map() },
    secret: await openSecret(db, keys, salt, { forInstance: true }),
    readBackUntilMs: Number((await readMeta(db, 'read_back_until')) ?? 0),
    readBackFromAgeMs: fromAge === undefined ? undefined : Number(fromAge),
  }
}

/**
 * Runs all checks of a start without changing anything, even while an adapter uses the journal. The tables are checked, or created if the
 * journal has none, in a transaction that is rolled back. Returns false if the journal has no tables yet. Throws the errors of
 * `openJournal`.
 */
export async function tryOpening({
  url,
  highWaterFile,
  ...sealing
}: DatabaseOptions & Unsealed): Promise<boolean> {
  const store = openStore(url, { timeoutMs: TIMEOUT_MS, wallMs: Date.now, existing: true, highWaterFile })
  const tried = new AdapterError('ADP_INTERNAL', 'The start was tried.')
  try {
    const path = sqlitePathOf(url)
    if (path !== undefined && !existsSync(path)) {
      expectSound(store, await store.findDamage())
      return false
    }
    await expectUsable(store)
    const exists = await hasTables(store.db, store.dialect)
    await store
      .exclusively(async (db) => {
        await checkTables(store, db, sealing)
        throw tried
      })
      .catch((cause: unknown) => {
        if (cause !== tried) throw cause
      })
    return exists
  } catch (error) {
    throw toOpeningError(store, error)
  } finally {
    await store.close()
  }
}

function expectSound({ place }: Store, damage: string | undefined): void {
  if (damage !== undefined) throw damagedStore(place, damage)
}

/** The database of a journal, for other data that is stored in the same database. */
export interface JournalDatabase {
  readonly db: Kysely<JournalTables>
  readonly dialect: Dialect
  readonly secret: Uint8Array
  /** Returns SQL for the clock by which leases are measured, in milliseconds since the epoch. */
  readonly nowMs: () => RawBuilder<number>
  /** Runs a query. Throws `ADP_JOURNAL_UNAVAILABLE`, `ADP_JOURNAL_DAMAGED`, or `ADP_INTERNAL` for an invalid statement. */
  ask<Result>(question: () => Promise<Result>): Promise<Result>
}

interface OpenedDatabase extends JournalDatabase {
  close(): Promise<void>
}

export interface DatabaseOptions {
  readonly url: string
  readonly keys?: readonly JournalKey[]
  readonly highWaterFile?: string | undefined
}

const TIMEOUT_MS = 10_000

/**
 * Opens the database of an existing journal without a lease and without changing its tables, even while an adapter uses the journal. Throws
 * `ADP_CONFIGURATION` for an invalid URL, a journal of another version or a missing key. Also throws `ADP_JOURNAL_UNAVAILABLE` and
 * `ADP_JOURNAL_DAMAGED`.
 */
export function openJournalDatabase({
  url,
  keys = [],
  highWaterFile,
}: DatabaseOptions): Promise<OpenedDatabase> {
  return openExisting(url, highWaterFile, async (store, ask) => {
    const { db, dialect, exclusively } = store
    const salt = await readSalt(db)
    const secret = await exclusively((at) => openSecret(at, keys, salt, { forInstance: false }))
    return { db, dialect, secret, nowMs: () => store.nowMs(), ask, close: () => store.close() }
  })
}

/** Opens the store of an existing journal for `open`, whose result must close the store. Throws the errors of `openJournalDatabase`. */
export async function openExisting<Opened>(
  url: string,
  highWaterFile: string | undefined,
  open: (store: Store, ask: Availability['ask']) => Opened | Promise<Opened>,
): Promise<Opened> {
  const store = openStore(url, { timeoutMs: TIMEOUT_MS, wallMs: Date.now, existing: true, highWaterFile })
  try {
    await expectUsable(store)
    expectSound(store, await findContradiction(store))
    if (!(await hasOwnTables(store.db, store.dialect)))
      throw new AdapterError(
        'ADP_CONFIGURATION',
        `The journal ${store.place} has no tables. Nothing was changed. Start markbridge serve once, which creates the tables.`,
      )
    return await open(store, createAvailability(store, backgroundClock, () => undefined).ask)
  } catch (error) {
    await store.close()
    throw toOpeningError(store, error)
  }
}

export function toOpeningError(store: Store, error: unknown): AdapterError {
  const damage = damageOf(error)
  if (damage !== undefined) return damagedStore(store.place, damage, error)
  if (error instanceof AdapterError) return error
  const storeError = store.toStoreError(error)
  if (storeError.kind === 'damaged') return damagedStore(store.place, storeError.message, error)
  return unopenedStore(store.place, storeError, error)
}
