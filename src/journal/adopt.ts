import { existsSync, renameSync } from 'node:fs'

import { type Kysely, sql } from 'kysely'

import { AdapterError } from '../errors.ts'

import { findContradiction, readHighWater, storePlace } from './find-contradiction.ts'
import { replaceMark } from './high-water.ts'
import { findKeyDamage, type KeyDamage } from './keys.ts'
import { openStore, sqlitePathOf, toOpeningError } from './open-store.ts'
import { readAge } from './retention.ts'
import {
  countAnew,
  createTables,
  findUnreadable,
  type JournalTables,
  newIdentity,
  readMeta,
  readSalt,
  writeMeta,
} from './schema.ts'
import type { JournalKey } from './seal.ts'
import type { Store } from './store.ts'
import { damagedStore } from './store-error.ts'

interface AdoptOptions {
  readonly url: string
  readonly highWaterFile?: string | undefined
  readonly keys?: readonly JournalKey[]
}

export interface JournalCondition {
  readonly place: string
  readonly damage: string | undefined
  /** False if the content of the journal cannot be used. Adopting an unusable SQLite journal creates a new journal in its place. */
  readonly usable: boolean
  readonly batches: number
  readonly openRecords: number
}

export interface Adopted {
  /** The time, in milliseconds since the epoch, until which every new record is read back from V3 before it is posted. */
  readonly readBackUntilMs: number
  /** The new paths of the unusable files, which were renamed. */
  readonly setAside: readonly string[]
}

const TIMEOUT_MS = 10_000

/** Runs the start-up checks without modifying the journal. Throws `ADP_CONFIGURATION` if the URL is invalid or the keys do not match. */
export async function examineJournal(options: AdoptOptions): Promise<JournalCondition> {
  const store = openAny(options, true)
  const { place } = store
  const unusable = (damage: string): JournalCondition => {
    return { place, damage, usable: false, batches: 0, openRecords: 0 }
  }
  try {
    const broken = await store.findDamage()
    if (broken !== undefined) return unusable(broken)
    const unreadable = await findUnreadable(store.db, store.dialect)
    if (unreadable?.usable === false) return unusable(unreadable.damage)
    const damage = unreadable?.damage ?? (await findContradiction(store))
    if ((await readHighWater(store.db, store.dialect)) === undefined) return unusable(damage ?? 'it is empty')
    const { rows } = await sql<{ batches: number; open: number | string | null }>`
      select count(*) as batches, sum(open) as open from journal_batches`.execute(store.db)
    const { batches = 0, open = 0 } = rows[0] ?? {}
    const ofKeys = await findDamageOfKeys(store.db, options)
    return { place, damage: damage ?? ofKeys?.damage, usable: true, batches, openRecords: Number(open ?? 0) }
  } catch (error) {
    if (error instanceof AdapterError && error.code === 'ADP_CONFIGURATION') throw error
    const storeError = store.toStoreError(error)
    if (storeError.kind === 'damaged' || store.dialect === 'sqlite') return unusable(storeError.message)
    throw toOpeningError(store, error)
  } finally {
    await store.close()
  }
}

/**
 * Accepts that a journal has lost records: for `replayForMs` milliseconds new records are read back from V3 before they are posted.
 * Unusable files are renamed, never deleted. No process may have the journal open.
 */
export async function adoptJournal(
  options: AdoptOptions,
  { usable }: Pick<JournalCondition, 'usable'>,
  replayForMs: number,
  nowMs: number,
): Promise<Adopted> {
  const setAside = usable ? [] : setFilesAside(options.url, nowMs)
  const store = openAny(options, false)
  try {
    return { readBackUntilMs: await adoptStore(store, options, replayForMs, nowMs), setAside }
  } finally {
    await store.close()
  }
}

export async function adoptStore(
  store: Store,
  options: Pick<AdoptOptions, 'keys'>,
  replayForMs: number,
  nowMs: number,
): Promise<number> {
  const { dialect } = store
  const { readBackUntilMs, mark } = await store.exclusively(async (db) => {
    const unreadable = await findUnreadable(db, dialect)
    if (unreadable?.usable === false) throw damagedStore(store.place, unreadable.damage)
    await createTables(db, dialect)
    await (await findDamageOfKeys(db, options))?.repair(db)
    // A damaged age counts as 0. With a lower age the journal recognises resends for longer, never for less time.
    const ageMs = (await readAge(db)) || 0
    const before = Number((await readMeta(db, 'read_back_until')) ?? 0) || 0
    const readBackUntilMs = Math.max(before, Math.ceil(nowMs + replayForMs))
    // The lost SQLite file may turn up again, so the adopted file gets another identity. A PostgreSQL journal keeps its identity, because
    // the high-water files on other machines contain the identity.
    if (dialect === 'sqlite' || unreadable?.names.includes('identity') === true)
      await writeMeta(db, 'identity', newIdentity())
    if (dialect === 'sqlite') await countAnew(db)
    await storePlace(db, dialect, { anew: true })
    await writeMeta(db, 'read_back_until', String(readBackUntilMs))
    await writeMeta(db, 'read_back_from_age', String(ageMs))
    await writeMeta(db, 'age', String(ageMs))
    return { readBackUntilMs, mark: await readHighWater(db, dialect) }
  })
  if (store.highWaterFile !== undefined && mark !== undefined) replaceMark(store.highWaterFile.path, mark)
  return readBackUntilMs
}

const findDamageOfKeys = async (
  db: Kysely<JournalTables>,
  { keys = [] }: Pick<AdoptOptions, 'keys'>,
): Promise<KeyDamage | undefined> => findKeyDamage(db, keys, await readSalt(db))

function openAny({ url, highWaterFile }: AdoptOptions, existing: boolean): Store {
  return openStore(url, { timeoutMs: TIMEOUT_MS, wallMs: Date.now, existing, highWaterFile })
}

function setFilesAside(url: string, nowMs: number): readonly string[] {
  const path = sqlitePathOf(url)
  if (path === undefined) return []
  const suffix = `damaged-${new Date(nowMs).toISOString().replaceAll(/[:.]/g, '-')}`
  return ['', '-wal', '-shm'].flatMap((ending) => {
    if (!existsSync(path + ending)) return []
    const name = `${path}.${suffix}${ending}`
    renameSync(path + ending, name)
    return [name]
  })
}
