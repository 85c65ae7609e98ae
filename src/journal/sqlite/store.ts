import { statSync } from 'node:fs'

import { Kysely, sql, SqliteAdapter, SqliteIntrospector, SqliteQueryCompiler } from 'kysely'

import { hasPassed } from '../group-commit.ts'
import { findMissingFile } from '../contradictions.ts'
import type { Store } from '../store.ts'
import type { JournalTables } from '../tables.ts'
import { markFileOf } from './file.ts'
import { startDatabaseThread, type ThreadStart } from './thread.ts'
import { toStoreError } from './to-store-error.ts'

interface SqliteOptions extends ThreadStart {
  /** Milliseconds since the epoch: all who share a file share a clock. */
  readonly wallMs: () => number
}

/** A file of this size is read whole in a fraction of a second. */
const CHECKED_BYTES = 64 * 1024 * 1024

/** Names parameters as PostgreSQL does, so that one text serves both. */
class NumberedQueryCompiler extends SqliteQueryCompiler {
  protected override getCurrentParameterPlaceholder(): string {
    return `$${this.numParameters}`
  }
}

/** Checks the pages and indexes of a file. */
async function findBrokenPage(db: Kysely<JournalTables>): Promise<string | undefined> {
  const { rows } = await sql<{ integrity_check: string }>`pragma integrity_check(1)`.execute(db)
  const found = rows[0]?.integrity_check ?? ''
  if (found === 'ok') return undefined
  return / (missing from|in) index /.test(found)
    ? 'an index of its file does not fit its table (PRAGMA integrity_check)'
    : 'its file has broken pages (PRAGMA integrity_check)'
}

/** Creates the store of one SQLite file, which a thread of its own holds. Several processes may share the file. */
export function createSqliteStore({ wallMs, ...start }: SqliteOptions): Store {
  const { path } = start
  const markFile = { path: markFileOf(path), required: true }
  const thread = startDatabaseThread(start)
  const db = new Kysely<JournalTables>({
    dialect: {
      createDriver: () => thread.driver,
      createQueryCompiler: () => new NumberedQueryCompiler(),
      createAdapter: () => new SqliteAdapter(),
      createIntrospector: (of) => new SqliteIntrospector(of),
    },
  })
  return {
    dialect: 'sqlite',
    place: `sqlite:${path}`,
    db,
    markFile,
    // In a larger file SQLite finds a broken page when it reads it.
    findDamage: async () => {
      const missing = findMissingFile(path, markFile.path)
      const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0
      return missing !== undefined || size === 0 || size > CHECKED_BYTES ? missing : findBrokenPage(db)
    },
    checkIntegrity: () => findBrokenPage(db),
    exclusively: (work) => db.transaction().execute(work),
    nowMs: () => sql<number>`${Math.round(wallMs())}`,
    prepare: (secrets) => thread.prepare(secrets),
    commit: async (group) => {
      try {
        return await thread.commit(group)
      } catch (error) {
        const storeError = toStoreError(error)
        // The thread has ended while it committed.
        return { ok: false, error: hasPassed(group.gate) ? { ...storeError, kind: 'doubtful' } : storeError }
      }
    },
    toStoreError,
    close: () => db.destroy(),
  }
}
