import { statSync } from 'node:fs'

import { Kysely, sql, SqliteAdapter, SqliteIntrospector, SqliteQueryCompiler } from 'kysely'

import { findMissingFile } from '../high-water/check-mark.ts'
import type { JournalTables } from '../schema/tables.ts'
import { hasPassed } from '../store/commit-gate.ts'
import type { Store } from '../store/store.ts'
import { startDatabaseThread } from './database-thread.ts'
import { markFileOf } from './open-database.ts'
import { toStoreError } from './to-store-error.ts'
import { createThreadDriver } from './thread-driver.ts'
import { createConnectionMutex } from './connection-mutex.ts'

export interface SqliteOptions {
  readonly path: string
  /** True: a file that is not there is an error. */
  readonly existing: boolean
  /** How long a lock of another process is waited for. */
  readonly busyMs: number
  readonly replayForMs: number
  /** Milliseconds since the epoch: all who share a file share a clock. */
  readonly wallMs: () => number
}

/** A file of this size is read whole in a fraction of a second. */
const CHECKED_BYTES = 64 * 1024 * 1024

/**
 * Checks the pages and indexes of a file that is not large. In a larger one SQLite finds a broken page when it reads it, and the checksums of
 * rows what SQLite does not see.
 */
async function findBrokenPage(db: Kysely<JournalTables>, path: string): Promise<string | undefined> {
  const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0
  if (size === 0 || size > CHECKED_BYTES) return undefined
  const { rows } = await sql<{ integrity_check: string }>`pragma integrity_check(1)`.execute(db)
  const found = rows[0]?.integrity_check ?? ''
  if (found === 'ok') return undefined
  return / (missing from|in) index /.test(found)
    ? 'an index of its file does not fit its table (PRAGMA integrity_check)'
    : 'its file has broken pages (PRAGMA integrity_check)'
}

/** Creates the store of one SQLite file, which a thread of its own holds. Several processes may share the file. */
export function createSqliteStore(options: SqliteOptions): Store {
  const { path, existing, busyMs, replayForMs, wallMs } = options
  const mark = { path: markFileOf(path), required: true }
  const thread = startDatabaseThread({ path, existing, busyMs, replayForMs })
  const turns = createConnectionMutex()
  const db = new Kysely<JournalTables>({
    dialect: {
      createDriver: () => createThreadDriver(thread, turns),
      createQueryCompiler: () => new SqliteQueryCompiler(),
      createAdapter: () => new SqliteAdapter(),
      createIntrospector: (of) => new SqliteIntrospector(of),
    },
  })
  return {
    dialect: 'sqlite',
    place: `sqlite:${path}`,
    db,
    mark,
    findDamage: async () => findMissingFile(path, mark.path) ?? (await findBrokenPage(db, path)),
    exclusively: (work) => db.transaction().execute(work),
    settlesApart: false,
    nowMs: () => sql<number>`${Math.round(wallMs())}`,
    prepare: (secrets) => thread.prepare(secrets),
    commit: async (group) => {
      const end = await turns.lock()
      try {
        return await thread.commit(group)
      } catch (error) {
        const storeError = toStoreError(error)
        // The thread has ended while it committed.
        return { ok: false, error: hasPassed(group.gate) ? { ...storeError, kind: 'doubtful' } : storeError }
      } finally {
        end()
      }
    },
    toStoreError: toStoreError,
    close: () => db.destroy(),
  }
}
