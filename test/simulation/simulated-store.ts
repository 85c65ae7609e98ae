import type { Pool, PoolClient } from 'pg'
import {
  type CompiledQuery,
  type DatabaseConnection,
  Kysely,
  type QueryResult,
  sql,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely'

import { createCommitChanges } from '../../src/journal/core/commit-changes.ts'
import { hasPassed, passGate } from '../../src/journal/group-commit.ts'
import {
  createHighWater,
  type HighWater,
  markerOf,
  type HighWaterFilePlace,
  slotOf,
} from '../../src/journal/high-water.ts'
import { createCommit } from '../../src/journal/postgres/store.ts'
import type { JournalTables } from '../../src/journal/schema.ts'
import { createStatements, type RunStatement, type StatementName } from '../../src/journal/sql.ts'
import type { Store, StoreSecrets } from '../../src/journal/store.ts'
import { gaveUp, type StoreError, toSqliteCommitError, toSqliteError } from '../../src/journal/store-error.ts'
import {
  execute,
  type TransactionLock,
  byNumber,
  prepare,
  type Row,
  type SimulatedDatabase,
  StoreFailure,
} from './simulated-database.ts'
import type { Actor } from './world.ts'

class NumberedQueryCompiler extends SqliteQueryCompiler {
  protected override getCurrentParameterPlaceholder(): string {
    return `$${this.numParameters}`
  }
}

/**
 * How commits are made: `thread` as with SQLite in a thread, `server` as with PostgreSQL, where a marker shows whether a lost COMMIT took
 * effect.
 */
export type CommitKind = 'thread' | 'server'

/** Creates the store of one process on the shared database. `wallMs` reads the clock of the database. */
export function createSimulatedStore(
  database: SimulatedDatabase,
  actor: Actor,
  wallMs: () => number,
  kind: CommitKind,
  highWaterFile?: HighWaterFilePlace,
): Store {
  const db = createKysely(database, actor)
  let commit: Store['commit'] | undefined
  return {
    dialect: 'sqlite',
    place: 'simulated',
    db,
    highWaterFile,
    findDamage: () => Promise.resolve(undefined),
    checkIntegrity: () => Promise.resolve(undefined),
    exclusively: (work) => db.transaction().execute(work),
    nowMs: () => sql<number>`${Math.round(wallMs())}`,
    prepare: (secrets) => {
      const file = highWaterFile && database.openMark(highWaterFile.path, secrets.mark)
      const kept = createHighWater(secrets, file)
      const mark: HighWater = {
        ...kept,
        reached: (instance, commits) => {
          kept.reached(instance, commits)
          database.recordCommit(actor.name, { slot: slotOf(instance), commits })
        },
      }
      commit =
        kind === 'server'
          ? createCommit(createPool(database, actor), mark, secrets)
          : createThreadCommit(database, actor, secrets, mark)
      return Promise.resolve()
    },
    commit: async (group) => {
      if (commit === undefined) throw new Error('the store was not prepared')
      return commit(group)
    },
    toStoreError: (error) => toFailure(error, false),
    close: () => db.destroy(),
  }
}

function createKysely(database: SimulatedDatabase, actor: Actor): Kysely<JournalTables> {
  const connect = (): DatabaseConnection => ({
    executeQuery: <Row>({ sql: text, parameters }: CompiledQuery): Promise<QueryResult<Row>> =>
      database.request(actor, 'query', () => {
        const { rows, changes } = execute(prepare(text), byNumber(parameters))
        return { rows: rows as Row[], numAffectedRows: BigInt(changes) }
      }),
    streamQuery: () => {
      throw new Error('no streams')
    },
  })
  const holds = new WeakMap<DatabaseConnection, TransactionLock>()
  return new Kysely<JournalTables>({
    dialect: {
      createDriver: () => ({
        init: () => Promise.resolve(),
        acquireConnection: async () => {
          const connection = connect()
          holds.set(connection, await database.lock(actor))
          return connection
        },
        beginTransaction: () => database.request(actor, 'query', () => database.begin()),
        commitTransaction: () => database.request(actor, 'query', () => database.commit()),
        // Does nothing, because `releaseConnection` rolls the transaction back.
        rollbackTransaction: () => Promise.resolve(),
        releaseConnection: (connection) => {
          database.unlock(holds.get(connection))
          return Promise.resolve()
        },
        destroy: () => Promise.resolve(),
      }),
      createQueryCompiler: () => new NumberedQueryCompiler(),
      createAdapter: () => new SqliteAdapter(),
      createIntrospector: (of) => new SqliteIntrospector(of),
    },
  })
}

const statements = createStatements('sqlite')

/** Runs a statement of the journal. If the first value is a list of rows, the statement runs once for each row. */
function run(name: StatementName, values: readonly unknown[]): unknown[] {
  const statement = prepare(statements[name])
  const [rows] = values
  if (!Array.isArray(rows)) return execute(statement, byNumber(values)).rows
  return (rows as readonly Row[]).flatMap((row) => execute(statement, (column) => row[column]).rows)
}

/**
 * Creates the `commit` function that SQLite's thread uses. A simulated commit that fails was never made, although the thread cannot know
 * that.
 */
function createThreadCommit(
  database: SimulatedDatabase,
  actor: Actor,
  secrets: StoreSecrets,
  mark: HighWater,
): Store['commit'] {
  const change = createCommitChanges(secrets, mark)
  const runNow: RunStatement = async <Row>(name: StatementName, ...values: readonly unknown[]) =>
    run(name, values) as Row[]
  return async (group) => {
    const hold = await database.lock(actor)
    try {
      await database.request(actor, 'commit', () => database.begin())
      const changed = await change(runNow, group, markerOf(group.instance, secrets.process, ''))
      if (!changed.ok || !passGate(group.gate))
        return { ok: false, error: changed.ok ? gaveUp : changed.error } as const
      await database.request(actor, 'commit', () => database.commit(), { isLocal: true })
      mark.reached(group.instance, changed.commits)
      return { ok: true, results: changed.results } as const
    } catch (error) {
      return { ok: false, error: toFailure(error, hasPassed(group.gate)) }
    } finally {
      database.unlock(hold)
    }
  }
}

/** Creates a `pg` pool with only the members that the commits of the PostgreSQL store use. */
function createPool(database: SimulatedDatabase, actor: Actor): Pool {
  const connect = (): PoolClient => {
    // A connection runs its queries in order. After an error it runs no further query of the transaction.
    let last: Promise<unknown> = Promise.resolve()
    let hold: TransactionLock | undefined
    const inTurn = (act: () => Promise<unknown>): Promise<unknown> => (last = last.then(act))
    const query = (
      asked: string | { readonly name: string; readonly values: readonly unknown[] },
    ): Promise<unknown> => {
      if (typeof asked !== 'string')
        return inTurn(() =>
          database.request(actor, 'query', () => ({
            rows: run(asked.name.replace('journal_', '') as StatementName, asked.values.map(fromText)),
          })),
        )
      if (asked.startsWith('begin'))
        return inTurn(async () => {
          hold = await database.lock(actor)
          await database.request(actor, 'commit', () => database.begin())
        })
      return inTurn(async () => {
        const isCommit = asked === 'commit'
        await database.request(actor, isCommit ? 'commit' : 'query', () =>
          isCommit ? database.commit() : database.rollback(),
        )
        database.unlock(hold)
        return { command: asked.toUpperCase() }
      })
    }
    return {
      query,
      release: () => database.unlock(hold),
    } as unknown as PoolClient
  }
  return { connect: () => Promise.resolve(connect()) } as unknown as Pool
}

/** Parses rows, which the PostgreSQL store passes as one JSON text. */
const fromText = (value: unknown): unknown =>
  typeof value === 'string' && value.startsWith('[{') ? (JSON.parse(value) as unknown) : value

/** Converts an error. If the connection was lost after COMMIT was sent, nobody knows whether the transaction was committed. */
function toFailure(error: unknown, hasCommitted: boolean): StoreError {
  if (!(error instanceof StoreFailure)) return (hasCommitted ? toSqliteCommitError : toSqliteError)(error)
  const message = 'the connection was lost'
  return { kind: hasCommitted ? 'doubtful' : 'transient', message, cause: error }
}
