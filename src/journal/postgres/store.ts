import { Kysely, PostgresDialect, sql } from 'kysely'

import { AdapterError } from '../../errors.ts'
import { createHighWater, type HighWater } from '../high-water/high-water.ts'
import { openMarkFile } from '../high-water/mark-file.ts'
import type { JournalTables } from '../schema/tables.ts'
import type { Committed, Group, Store } from '../store/store.ts'
import { createCommitGroups } from './commit-group.ts'
import { connect, placeOf } from './connect.ts'
import { toStoreError } from './to-store-error.ts'
import { ORDER_LOCK } from './transaction.ts'

export interface PostgresOptions {
  readonly url: string
  /** How long a connection and a statement may take. */
  readonly timeoutMs: number
  readonly replayForMs: number
  /** Where the mark is kept; undefined: in memory alone. */
  readonly markFile: string | undefined
}

/** Creates the store of a PostgreSQL database, which several instances may share. Needs PostgreSQL 13. */
export function createPostgresStore({ url, timeoutMs, replayForMs, markFile }: PostgresOptions): Store {
  const pool = connect(url, timeoutMs)
  const db = new Kysely<JournalTables>({ dialect: new PostgresDialect({ pool }) })
  // An instance on a machine of its own begins without a file: there is nothing to set the journal against yet.
  const mark = markFile === undefined ? undefined : { path: markFile, required: false }
  let highWater: HighWater | undefined
  let commitGroups: ((group: Group) => Promise<Committed>) | undefined
  return {
    dialect: 'postgres',
    place: placeOf(url),
    db,
    exclusively: (work) =>
      db.transaction().execute(async (transaction) => {
        await sql`select pg_advisory_xact_lock(${ORDER_LOCK})`.execute(transaction)
        return work(transaction)
      }),
    mark,
    findDamage: () => Promise.resolve(undefined),
    settlesApart: true,
    nowMs: () => sql<number>`cast(extract(epoch from clock_timestamp()) * 1000 as bigint)`,
    prepare: (secrets) => {
      highWater = createHighWater(
        secrets.mark,
        mark === undefined ? undefined : openMarkFile(mark.path, secrets.mark),
      )
      commitGroups = createCommitGroups(pool, highWater, secrets, replayForMs)
      return Promise.resolve()
    },
    commit: (group) => {
      if (commitGroups !== undefined) return commitGroups(group)
      throw new AdapterError('ADP_INTERNAL', 'The journal was not prepared.')
    },
    toStoreError: toStoreError,
    close: () => {
      highWater?.close()
      highWater = undefined
      return db.destroy()
    },
  }
}
