import { Kysely, sql, SqliteAdapter, SqliteIntrospector, SqliteQueryCompiler } from 'kysely'

import type { JournalTables } from '../schema/tables.ts'
import type { Store } from '../store/store.ts'
import { startDatabaseThread } from './database-thread.ts'
import { toSqliteFault } from './sqlite-fault.ts'
import { createThreadDriver } from './thread-driver.ts'
import { createTurns } from './turns.ts'

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

/** Creates the store of one SQLite file, which a thread of its own holds. Several processes may share the file. */
export function createSqliteStore(options: SqliteOptions): Store {
  const { path, existing, busyMs, replayForMs, wallMs } = options
  const thread = startDatabaseThread({ path, existing, busyMs, replayForMs })
  const turns = createTurns()
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
    exclusively: (work) => db.transaction().execute(work),
    settlers: 0,
    nowMs: () => sql<number>`${Math.round(wallMs())}`,
    prepare: (secrets) => thread.prepare(secrets),
    commit: async (group) => {
      const end = await turns.take()
      try {
        return await thread.commit(group)
      } catch (error) {
        return { ok: false, fault: toSqliteFault(error) }
      } finally {
        end()
      }
    },
    toFault: toSqliteFault,
    close: () => db.destroy(),
  }
}
