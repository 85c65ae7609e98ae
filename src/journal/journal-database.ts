import type { Kysely, RawBuilder } from 'kysely'

import { backgroundClock } from '../clock.ts'
import { AdapterError } from '../errors.ts'
import { type Availability, createAvailability } from './availability.ts'
import { findContradiction } from './contradictions.ts'
import { type MacKey, openMacKey } from './keys.ts'
import { readMeta } from './meta.ts'
import { openStore } from './open-store.ts'
import type { JournalKey } from './seal.ts'
import { checkVersion } from './schema.ts'
import type { Dialect, Store } from './store.ts'
import { damagedStore } from './store-error.ts'
import type { JournalTables } from './tables.ts'

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
    const salt = Buffer.from((await readMeta(db, 'salt')) ?? '', 'hex')
    const macKey = await openMacKey(exclusively, keys, salt, { forInstance: false })
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
    const damage = (await store.findDamage()) ?? (await findContradiction(store))
    if (damage !== undefined) throw damagedStore(store.place, damage)
    await checkVersion(store.db, store.dialect)
    return await open(store, createAvailability(store, backgroundClock, () => undefined).ask)
  } catch (error) {
    await store.close()
    throw toOpeningError(store, error)
  }
}

/** The error of opening a journal that should be there. */
function toOpeningError(store: Store, error: unknown): AdapterError {
  if (error instanceof AdapterError) return error
  const storeError = store.toStoreError(error)
  if (storeError.kind === 'damaged') return damagedStore(store.place, storeError.message, error)
  return new AdapterError(
    'ADP_JOURNAL_UNAVAILABLE',
    `There is no journal at ${store.place}: ${storeError.message}.`,
    { cause: error },
  )
}
