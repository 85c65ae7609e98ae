import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'

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
import { createHighWater } from '../../src/journal/high-water.ts'
import { createCommit } from '../../src/journal/postgres/store.ts'
import type { JournalTables } from '../../src/journal/schema.ts'
import { createStatements, type RunStatement, type StatementName } from '../../src/journal/sql.ts'
import type { Store } from '../../src/journal/store.ts'
import { gaveUp, type StoreError, toSqliteCommitError, toSqliteError } from '../../src/journal/store-error.ts'
import type { Actor, World } from './world.ts'

/** What may happen to one request to the database. */
export interface StoreFault {
  /** Nothing was done; it was done, and its answer is lost. */
  readonly kind: 'refused' | 'unanswered'
}

/** Draws what happens to the next request: how long it takes, and how it fails. */
export interface StoreWeather {
  delayMs(): number
  faultOf(what: 'query' | 'commit'): StoreFault | undefined
}

/** A database in memory with the durability of one that syncs each commit: a process that dies takes only its transaction along. */
export class SimulatedDatabase {
  private readonly world: World
  private readonly weather: StoreWeather
  private readonly database = new DatabaseSync(':memory:')
  private readonly statements = new Map<string, StatementSync>()
  private holder: Hold | undefined
  private waiting: { readonly hold: Hold; readonly enter: () => void }[] = []

  constructor(world: World, weather: StoreWeather, image: Uint8Array | undefined) {
    this.world = world
    this.weather = weather
    if (image !== undefined) this.database.deserialize(image)
  }

  image(): Uint8Array {
    return this.database.serialize()
  }

  /** Waits until no other transaction runs. */
  lock(actor: Actor): Promise<Hold> {
    return new Promise((resolve) => {
      const hold = { actor }
      const enter = (): void => {
        this.holder = hold
        resolve(hold)
      }
      if (this.holder === undefined) enter()
      else this.waiting.push({ hold, enter })
    })
  }

  /** Rolls back what was not committed, and lets the next one in. */
  unlock(hold: Hold | undefined): void {
    if (hold === undefined || this.holder !== hold) return
    if (this.database.isTransaction) this.database.exec('ROLLBACK')
    this.holder = undefined
    const next = this.waiting.shift()
    if (next === undefined) return
    // In a turn of its own: the one who waits may be another process.
    this.holder = next.hold
    this.world.at(next.hold.actor, 0, next.enter)
  }

  /** The process died: its transaction is rolled back. */
  abandon(actor: Actor): void {
    this.waiting = this.waiting.filter(({ hold }) => hold.actor !== actor)
    if (this.holder?.actor === actor) this.unlock(this.holder)
  }

  exec(text: string): void {
    this.database.exec(text)
  }

  statement(text: string): StatementSync {
    const known = this.statements.get(text) ?? this.database.prepare(text)
    this.statements.set(text, known)
    return known
  }

  /** Runs `act` once the database has got the request, and resolves with its result once the answer has come. */
  async ask<Result>(actor: Actor, what: 'query' | 'commit', act: () => Result): Promise<Result> {
    await this.world.wait(actor, this.weather.delayMs())
    const fault = this.weather.faultOf(what)
    if (fault?.kind === 'refused') throw new StoreFailure('refused')
    const result = act()
    await this.world.wait(actor, this.weather.delayMs())
    if (fault?.kind === 'unanswered') throw new StoreFailure('unanswered')
    return result
  }

  // eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- the query says which rows it gives
  all<Row>(sqlText: string): readonly Row[] {
    return this.database.prepare(sqlText).all() as Row[]
  }

  close(): void {
    this.database.close()
  }
}

/** The right to the one transaction that may run. */
interface Hold {
  readonly actor: Actor
}

/** A request to the database failed on its way. */
class StoreFailure extends Error {
  readonly kind: 'refused' | 'unanswered'

  constructor(kind: 'refused' | 'unanswered') {
    super(kind)
    this.kind = kind
  }
}

class NumberedQueryCompiler extends SqliteQueryCompiler {
  protected override getCurrentParameterPlaceholder(): string {
    return `$${this.numParameters}`
  }
}

const named = (values: readonly unknown[]): Record<string, SQLInputValue> =>
  Object.fromEntries(values.map((value, index) => [`$${index + 1}`, value as SQLInputValue]))

/** How a store commits. `thread`: as SQLite's thread. `server`: as PostgreSQL, which answers a lost COMMIT by a marker afterwards. */
export type CommitKind = 'thread' | 'server'

/** The store of one process on a shared database. `wallMs`: the clock of the database. */
export function createSimulatedStore(
  database: SimulatedDatabase,
  actor: Actor,
  wallMs: () => number,
  kind: CommitKind,
): Store {
  const db = createKysely(database, actor)
  let commit: Store['commit'] | undefined
  return {
    dialect: 'sqlite',
    place: 'simulated',
    db,
    markFile: undefined,
    findDamage: () => Promise.resolve(undefined),
    checkIntegrity: () => Promise.resolve(undefined),
    exclusively: (work) => db.transaction().execute(work),
    nowMs: () => sql<number>`${Math.round(wallMs())}`,
    prepare: (secrets) => {
      const mark = createHighWater(secrets.mark, undefined)
      commit =
        kind === 'server'
          ? createCommit(createPool(database, actor), mark, secrets)
          : createThreadCommit(database, actor, createCommitChanges(secrets, mark), mark)
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
      database.ask(actor, 'query', () => {
        const statement = database.statement(text)
        if (statement.columns().length > 0) return { rows: statement.all(named(parameters)) as Row[] }
        return { rows: [], numAffectedRows: BigInt(statement.run(named(parameters)).changes) }
      }),
    streamQuery: () => {
      throw new Error('no streams')
    },
  })
  const control = (text: string): Promise<void> => database.ask(actor, 'query', () => database.exec(text))
  const holds = new WeakMap<DatabaseConnection, Hold>()
  return new Kysely<JournalTables>({
    dialect: {
      createDriver: () => ({
        init: () => Promise.resolve(),
        acquireConnection: async () => {
          const connection = connect()
          holds.set(connection, await database.lock(actor))
          return connection
        },
        beginTransaction: () => control('BEGIN IMMEDIATE'),
        commitTransaction: () => control('COMMIT'),
        // The database rolls back when the connection is given back.
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

/** Runs a statement of the journal: once for each row where it is given rows. */
function run(database: SimulatedDatabase, name: StatementName, values: readonly unknown[]): unknown[] {
  const statement = database.statement(statements[name])
  const [rows] = values
  const each = (Array.isArray(rows) ? rows : [named(values)]) as Record<string, SQLInputValue>[]
  if (statement.columns().length > 0) return each.flatMap((row) => statement.all(row))
  for (const row of each) statement.run(row)
  return []
}

/** Commits as the thread of SQLite does. */
function createThreadCommit(
  database: SimulatedDatabase,
  actor: Actor,
  change: ReturnType<typeof createCommitChanges>,
  mark: ReturnType<typeof createHighWater>,
): Store['commit'] {
  const runNow: RunStatement = async <Row>(name: StatementName, ...values: readonly unknown[]) =>
    run(database, name, values) as Row[]
  return async (group) => {
    const hold = await database.lock(actor)
    try {
      await database.ask(actor, 'commit', () => database.exec('BEGIN IMMEDIATE'))
      const changed = await change(runNow, group, '')
      if (!changed.ok || !passGate(group.gate))
        return { ok: false, error: changed.ok ? gaveUp : changed.error } as const
      await database.ask(actor, 'commit', () => database.exec('COMMIT'))
      mark.reached(group.instance, changed.commits)
      return { ok: true, results: changed.results } as const
    } catch (error) {
      return { ok: false, error: toFailure(error, hasPassed(group.gate)) }
    } finally {
      database.unlock(hold)
    }
  }
}

/** Connections of `pg` to the database, as far as the commits of PostgreSQL use them. */
function createPool(database: SimulatedDatabase, actor: Actor): Pool {
  const connect = (): PoolClient => {
    // A connection answers in the order of its queries, and after an error none of a transaction.
    let last: Promise<unknown> = Promise.resolve()
    let hold: Hold | undefined
    const inTurn = (act: () => Promise<unknown>): Promise<unknown> => (last = last.then(act))
    const query = (
      asked: string | { readonly name: string; readonly values: readonly unknown[] },
    ): Promise<unknown> => {
      if (typeof asked !== 'string')
        return inTurn(() =>
          database.ask(actor, 'query', () => ({
            rows: run(
              database,
              asked.name.replace('journal_', '') as StatementName,
              asked.values.map(fromText),
            ),
          })),
        )
      if (asked.startsWith('begin'))
        return inTurn(async () => {
          hold = await database.lock(actor)
          await database.ask(actor, 'commit', () => database.exec('BEGIN IMMEDIATE'))
        })
      return inTurn(async () => {
        const isCommit = asked === 'commit'
        await database.ask(actor, isCommit ? 'commit' : 'query', () => database.exec(asked))
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

/** Rows come as one JSON text. */
const fromText = (value: unknown): unknown =>
  typeof value === 'string' && value.startsWith('[{') ? (JSON.parse(value) as unknown) : value

/** A connection that was lost: after the commit was sent nobody knows what became of it. */
function toFailure(error: unknown, hasCommitted: boolean): StoreError {
  if (!(error instanceof StoreFailure)) return (hasCommitted ? toSqliteCommitError : toSqliteError)(error)
  const message = 'the connection was lost'
  return { kind: hasCommitted ? 'doubtful' : 'transient', message, cause: error }
}
