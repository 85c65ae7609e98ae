import { Kysely, PostgresDialect, sql } from 'kysely'

import { AdapterError } from '../../errors.ts'
import type { JournalTables } from '../schema/tables.ts'
import type { Committed, Group, Store } from '../store/store.ts'
import { createCommitGroups, ORDER_LOCK, SETTLERS } from './commit-groups.ts'
import { connect, placeOf } from './connect.ts'
import { toPostgresFault } from './postgres-fault.ts'

export interface PostgresOptions {
  readonly url: string
  /** How long a connection and a statement may take. */
  readonly timeoutMs: number
  readonly replayForMs: number
}

/** Creates the store of a PostgreSQL database, which several instances may share. Needs PostgreSQL 13. */
export function createPostgresStore({ url, timeoutMs, replayForMs }: PostgresOptions): Store {
  const pool = connect(url, timeoutMs)
  const db = new Kysely<JournalTables>({ dialect: new PostgresDialect({ pool }) })
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
    settlers: SETTLERS,
    nowMs: () => sql<number>`cast(extract(epoch from clock_timestamp()) * 1000 as bigint)`,
    prepare: (secrets) => {
      commitGroups = createCommitGroups(pool, secrets, replayForMs)
      return Promise.resolve()
    },
    commit: (group) => {
      if (commitGroups !== undefined) return commitGroups(group)
      throw new AdapterError('ADP_INTERNAL', 'The journal was not prepared.')
    },
    toFault: toPostgresFault,
    close: () => db.destroy(),
  }
}
