import { AdapterError } from '../errors.ts'
import { findContradiction, keepPlace, readHighWater } from './contradictions.ts'
import type { HighWaterMark } from './high-water.ts'
import { readMeta } from './meta.ts'
import { createPostgresStore } from './postgres/store.ts'
import { migrate } from './schema.ts'
import { createSqliteStore } from './sqlite/store.ts'
import type { Store } from './store.ts'
import { damagedStore } from './store-error.ts'

interface StoreOptions {
  /** How long `begin` waits in all: no single try may take longer. */
  readonly timeoutMs: number
  readonly wallMs: () => number
  /** True: an SQLite file is opened only where there is one. */
  readonly existing?: boolean
  /** Where a PostgreSQL journal keeps its mark; an SQLite file has it beside it. */
  readonly markFile?: string | undefined
}

/** Creates the store that an address names; nothing is opened yet. Error: `ADP_CONFIGURATION`. */
export function openStore(url: string, options: StoreOptions): Store {
  const { wallMs, existing = false, markFile } = options
  const timeoutMs = Math.ceil(options.timeoutMs / 2)
  const path = /^sqlite:(?:\/\/(?=\/))?(.+)$/.exec(url)?.[1]
  if (path !== undefined && path !== ':memory:')
    return createSqliteStore({ path, existing, busyMs: timeoutMs, wallMs })
  if (/^postgres(?:ql)?:\/\//.test(url)) return createPostgresStore({ url, timeoutMs, markFile })
  throw new AdapterError(
    'ADP_CONFIGURATION',
    'The address of a journal is sqlite:<file> or postgres://<user>:<password>@<host>/<database>.',
  )
}

/** The facts of a journal whose tables are up to date. */
interface OpenedTables {
  readonly salt: Uint8Array
  readonly mark: HighWaterMark
  /** Milliseconds since the epoch; 0: never. */
  readonly readBackUntilMs: number
  /** The age of the journal when what it may have lost was accepted, ms; undefined: nothing was. */
  readonly readBackFromAgeMs: number | undefined
}

/**
 * Checks that the journal is the one of its mark and brings its tables up to date. Errors: `ADP_JOURNAL_DAMAGED` with nothing
 * changed; those of `migrate`.
 */
export async function openTables(store: Store): Promise<OpenedTables> {
  const expectSound = (damage: string | undefined): void => {
    if (damage !== undefined) throw damagedStore(store.place, damage)
  }
  expectSound(await store.findDamage())
  return store.exclusively(async (db) => {
    expectSound(await findContradiction({ ...store, db }))
    await migrate(db, store.dialect)
    await keepPlace(db, store.dialect, { anew: false })
    const fromAge = await readMeta(db, 'read_back_from_age')
    const mark = await readHighWater(db, store.dialect)
    return {
      salt: Buffer.from((await readMeta(db, 'salt')) ?? '', 'hex'),
      mark: mark ?? { identity: '', commits: new Map() },
      readBackUntilMs: Number((await readMeta(db, 'read_back_until')) ?? 0),
      readBackFromAgeMs: fromAge === undefined ? undefined : Number(fromAge),
    }
  })
}
