import { randomBytes } from 'node:crypto'
import { existsSync, renameSync } from 'node:fs'

import { readAge } from './ageing.ts'
import { findDamagedRows } from './check-rows.ts'
import { findContradiction, keepPlace, readKept } from './high-water/check-mark.ts'
import { replaceMark } from './high-water/mark-file.ts'
import { migrate, readMeta, writeMeta } from './schema/migrate.ts'
import { migrations } from './schema/migrations.ts'
import { openStore } from './store/open-store.ts'
import type { Store } from './store/store.ts'

export interface AdoptOptions {
  readonly url: string
  readonly markFile?: string | undefined
}

/** The damage of a journal, and its usable content. */
export interface JournalCondition {
  readonly place: string
  /** Undefined: nothing that is found from outside. */
  readonly damage: string | undefined
  /** False: nothing of it can be used, and a new journal is begun in its place. */
  readonly usable: boolean
  readonly batches: number
  readonly openRecords: number
  /** Batches with a row that is not as it was written. */
  readonly damagedBatches: number
}

/** The result of accepting the loss of a journal. */
export interface Adopted {
  /** Until then new records are read back from V3 before they are posted (ms since the epoch). */
  readonly readBackUntilMs: number
  /** Where the unusable files are kept now. */
  readonly setAside: readonly string[]
}

const TIMEOUT_MS = 10_000

/** Examines a journal and changes nothing. Error: `ADP_CONFIGURATION` for an address that is none. */
export async function examineJournal(options: AdoptOptions): Promise<JournalCondition> {
  const store = openAny(options, true)
  const { place } = store
  const unusable = (damage: string): JournalCondition => {
    return { place, damage, usable: false, batches: 0, openRecords: 0, damagedBatches: 0 }
  }
  try {
    const broken = await store.findDamage()
    if (broken !== undefined) return unusable(broken)
    const damage = await findContradiction(store.db, store.dialect, store.mark)
    if ((await readKept(store.db, store.dialect)) === 'empty') return unusable(damage ?? 'it is empty')
    const { batches } = await store.db
      .selectFrom('journal_batches')
      .select(({ fn }) => fn.countAll<number | string>().as('batches'))
      .executeTakeFirstOrThrow()
    const { open } = await store.db
      .selectFrom('journal_batches')
      .select(({ fn }) => fn.sum<number | string | null>('open').as('open'))
      .executeTakeFirstOrThrow()
    return {
      place,
      damage,
      usable: true,
      batches: Number(batches),
      openRecords: Number(open ?? 0),
      damagedBatches: await countDamaged(store.db),
    }
  } catch (error) {
    const storeError = store.toStoreError(error)
    if (storeError.kind === 'damaged' || store.dialect === 'sqlite') return unusable(storeError.message)
    throw error
  } finally {
    await store.close()
  }
}

/** Checks all rows. Those of an older version, which kept no checksums, count as whole. */
async function countDamaged(db: Store['db']): Promise<number> {
  if ((await readMeta(db, 'schema')) !== String(migrations.length)) return 0
  const all = { sinceMs: -Infinity, afterBatch: 0, nowMs: Date.now(), batches: Infinity }
  return (await findDamagedRows(db, all)).batches
}

/**
 * Accepts that a journal has lost something: its mark is written anew for what is there, and for `replayForMs` every new record is
 * looked for in V3 before it is posted. What cannot be used is set aside, never deleted. No process may have the journal open.
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
    const until = Math.ceil(nowMs + replayForMs)
    const opened = await migrate(store.exclusively, store.dialect, {
      newSalt: () => randomBytes(16),
      replayUntilMs: until,
      check: () => Promise.resolve(),
    })
    const readBackUntilMs = Math.max(opened.readBackUntilMs, until)
    // The file that was lost may turn up again: it is another journal from now on. Marks of other machines name a PostgreSQL
    // journal, which stays the same one.
    const identity = store.dialect === 'sqlite' ? randomBytes(16).toString('hex') : opened.mark.identity
    await store.exclusively(async (db) => {
      await writeMeta(db, 'identity', identity)
      await keepPlace(db, store.dialect, { anew: true })
      await writeMeta(db, 'read_back_until', String(readBackUntilMs))
      await writeMeta(db, 'read_back_from_age', String(await readAge(db)))
    })
    if (store.mark !== undefined) replaceMark(store.mark.path, { identity, commits: opened.mark.commits })
    return { readBackUntilMs, setAside }
  } finally {
    await store.close()
  }
}

function openAny({ url, markFile }: AdoptOptions, existing: boolean): Store {
  return openStore(url, { timeoutMs: TIMEOUT_MS, replayForMs: 0, wallMs: Date.now, existing, markFile })
}

/** Renames the files of an SQLite journal; gives the new names. */
function setFilesAside(url: string, nowMs: number): readonly string[] {
  const path = /^sqlite:(?:\/\/(?=\/))?(.+)$/.exec(url)?.[1]
  if (path === undefined) return []
  const suffix = `damaged-${new Date(nowMs).toISOString().replaceAll(/[:.]/g, '-')}`
  return ['', '-wal', '-shm'].flatMap((ending) => {
    if (!existsSync(path + ending)) return []
    const name = `${path}.${suffix}${ending}`
    renameSync(path + ending, name)
    return [name]
  })
}
