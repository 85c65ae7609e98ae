import {
  CompiledQuery,
  type DatabaseConnection,
  type Driver,
  type QueryResult,
  type TransactionSettings,
} from 'kysely'

import { AdapterError } from '../../errors.ts'
import type { DatabaseThread } from './database-thread.ts'
import type { ConnectionMutex } from './connection-mutex.ts'

/** Kysely's way to the thread: one connection, which groups and transactions use in turns. */
export function createThreadDriver(thread: DatabaseThread, turns: ConnectionMutex): Driver {
  const ends = new WeakMap<DatabaseConnection, () => void>()
  const run = async (connection: DatabaseConnection, text: string): Promise<void> => {
    await connection.executeQuery(CompiledQuery.raw(text))
  }
  return {
    init: () => Promise.resolve(),
    acquireConnection: async () => {
      const end = await turns.lock()
      const connection = createConnection(thread)
      ends.set(connection, end)
      return connection
    },
    // A reader takes no lock; a writer takes it at once, since a lock that is wanted later cannot be waited for.
    beginTransaction: (connection, settings: TransactionSettings) =>
      run(connection, settings.accessMode === 'read only' ? 'BEGIN' : 'BEGIN IMMEDIATE'),
    commitTransaction: (connection) => run(connection, 'COMMIT'),
    rollbackTransaction: (connection) => run(connection, 'ROLLBACK'),
    releaseConnection: (connection) => {
      ends.get(connection)?.()
      return Promise.resolve()
    },
    destroy: () => thread.close(),
  }
}

function createConnection(thread: DatabaseThread): DatabaseConnection {
  return {
    executeQuery: async <Row>({ sql, parameters }: CompiledQuery): Promise<QueryResult<Row>> => {
      const { rows, changes } = await thread.query(sql, parameters)
      // Kysely derives the type of a row from the query; no driver can check it.
      return { rows: rows as unknown as Row[], numAffectedRows: BigInt(changes) }
    },
    streamQuery: () => {
      throw new AdapterError('ADP_INTERNAL', 'The journal reads no streams.')
    },
  }
}
