import { Kysely, PostgresDialect, sql } from 'kysely'
import { Pool, type PoolClient, TypeOverrides, types } from 'pg'

import { AdapterError } from '../../errors.ts'
import { createCommitChanges } from '../core/commit-changes.ts'
import { type Committed, type Operation, type OperationResult, passGate } from '../group-commit.ts'
import { createHighWater, type HighWater, markerOf, openMarkFile, slotOf } from '../high-water.ts'
import { createStatements, type RunStatement, type StatementName } from '../sql.ts'
import type { Group, Store, StoreSecrets } from '../store.ts'
import { gaveUp, type StoreError, toPostgresError } from '../store-error.ts'
import type { JournalTables } from '../schema.ts'

interface PostgresOptions {
  readonly url: string
  /** How long a connection and a statement may take. */
  readonly timeoutMs: number
  /** Where the mark is kept; undefined: in memory alone. */
  readonly markFile: string | undefined
}

/** Connections of one instance: groups, and questions. */
const MAX_CONNECTIONS = 8

/** Settings of each connection, whatever the defaults of its role say. */
const SETTINGS = {
  // A commit is on the disk before it returns.
  synchronous_commit: 'on',
  // A connection keeps the plans of its statements, and makes them when the tables are nearly empty. Then whole tables are planned to be
  // read, row by row or into a hash, which takes longer with every batch until the server analyses them. All that the journal asks
  // often has an index.
  enable_seqscan: 'off',
  enable_hashjoin: 'off',
  enable_mergejoin: 'off',
  // What is planned in spite of that counts as expensive, and would be compiled.
  jit: 'off',
}

/** The lock under which all instances change batches and records: their order is the order of batch numbers and of commits. */
const ORDER_LOCK = 7_238_519_461
const LOCK = `select pg_advisory_xact_lock(${ORDER_LOCK})`

/**
 * The pool of a journal. Nothing waits longer than `timeoutMs` for one statement; the server ends a transaction whose client
 * went away, since it may hold the lock that all change batches under.
 */
export function connect(url: string, timeoutMs: number): Pool {
  const parsers = new TypeOverrides()
  // Counts, numbers and times are far below 2^53; pg gives bigint as text.
  parsers.setTypeParser(types.builtins.INT8, Number)
  const pool = new Pool({
    connectionString: url,
    max: MAX_CONNECTIONS,
    application_name: 'markbridge',
    connectionTimeoutMillis: timeoutMs,
    query_timeout: timeoutMs,
    idle_in_transaction_session_timeout: timeoutMs * 2,
    keepAlive: true,
    // The statements of a group go to the server without waiting for each other.
    pipeline: true,
    options: Object.entries(SETTINGS)
      .map(([name, value]) => `-c ${name}=${value}`)
      .join(' '),
    types: parsers,
  })
  // A connection that breaks is replaced; its user learns of it by the query. One in use may break between two queries.
  pool.on('error', () => undefined).on('connect', (client) => client.on('error', () => undefined))
  return pool
}

/** The address without its password. */
export function placeOf(url: string): string {
  if (!URL.canParse(url)) return 'postgres'
  const { hostname, port, pathname } = new URL(url)
  return `postgres://${hostname}${port === '' ? '' : `:${port}`}${pathname}`
}

/** Creates the store of a PostgreSQL database, which several instances may share. Needs PostgreSQL 13. */
export function createPostgresStore({ url, timeoutMs, markFile: path }: PostgresOptions): Store {
  const pool = connect(url, timeoutMs)
  const db = new Kysely<JournalTables>({ dialect: new PostgresDialect({ pool }) })
  // An instance on a machine of its own begins without a file: there is nothing to compare the journal with yet.
  const markFile = path === undefined ? undefined : { path, required: false }
  let highWater: HighWater | undefined
  let commit: Store['commit'] | undefined
  return {
    dialect: 'postgres',
    place: placeOf(url),
    db,
    exclusively: (work) =>
      db.transaction().execute(async (transaction) => {
        await sql.raw(LOCK).execute(transaction)
        return work(transaction)
      }),
    markFile,
    findDamage: () => Promise.resolve(undefined),
    checkIntegrity: () => Promise.resolve(undefined),
    nowMs: () => sql<number>`cast(extract(epoch from clock_timestamp()) * 1000 as bigint)`,
    prepare: (secrets) => {
      highWater = createHighWater(secrets, path === undefined ? undefined : openMarkFile(path, secrets.mark))
      commit = createCommit(pool, highWater, secrets)
      return Promise.resolve()
    },
    commit: (group) => {
      if (commit !== undefined) return commit(group)
      throw new AdapterError('ADP_INTERNAL', 'The journal was not prepared.')
    },
    toStoreError: toPostgresError,
    close: () => {
      highWater?.close()
      highWater = undefined
      return db.destroy()
    },
  }
}

const rolledBack: StoreError = { kind: 'transient', message: 'the database rolled back' }
const statements = createStatements('postgres')

/** A group whose COMMIT was not answered. */
interface Doubt {
  readonly instance: number
  readonly marker: string
  readonly results: ReadonlyMap<Operation, OperationResult>
}

/** Creates what makes a group durable: one transaction. Never rejects. */
export function createCommit(
  pool: Pool,
  highWater: HighWater,
  secrets: StoreSecrets,
): (group: Group) => Promise<Committed> {
  const changeRows = createCommitChanges(secrets, highWater)
  let groups = 0
  let doubt: Doubt | undefined
  /** Results of operations that turned out to be durable, or of which nothing can be said any longer. */
  const resolved = new WeakMap<Operation, OperationResult>()

  const resolve = async (run: RunStatement, { instance, marker, results }: Doubt): Promise<void> => {
    const [kept] = await run<{ marker: string | null }>('findMarker', slotOf(instance))
    // The number of a transaction would not do: a server that dies gives the numbers that never reached its disk to others.
    if (kept?.marker === marker) for (const one of results) resolved.set(...one)
    // Another instance has the slot now, and others finish the batch if it was begun.
    else if (kept?.marker?.startsWith(markerOf(instance, secrets.process, '')) === false)
      for (const [one] of results) if (one.kind === 'begin') resolved.set(one, 'doubtful')
    doubt = undefined
  }
  const commitOn = async (client: PoolClient, group: Group): Promise<Committed> => {
    const run = runOn(client)
    const begun = client.query(`begin; ${LOCK}`)
    begun.catch(() => undefined)
    if (doubt !== undefined) {
      await begun
      await resolve(run, doubt)
    }
    const operations = group.operations.filter((operation) => !resolved.has(operation))
    const marker = markerOf(group.instance, secrets.process, (groups += 1))
    const changed = await changeRows(run, { ...group, operations }, marker)
    if (!changed.ok || !passGate(group.gate)) {
      await client.query('rollback')
      return { ok: false, error: changed.ok ? gaveUp : changed.error }
    }
    const results = new Map(operations.map((one, index) => [one, changed.results[index] ?? 'lost']))
    try {
      // PostgreSQL answers COMMIT with ROLLBACK where an error came before.
      const { command } = await client.query('commit')
      if (command !== 'COMMIT') return { ok: false, error: rolledBack }
    } catch (cause) {
      doubt = { instance: group.instance, marker, results }
      return { ok: false, error: { ...toPostgresError(cause), kind: 'doubtful' } }
    }
    highWater.reached(group.instance, changed.commits)
    const all = group.operations.map((one) => results.get(one) ?? resolved.get(one) ?? 'lost')
    for (const operation of group.operations) resolved.delete(operation)
    return { ok: true, results: all }
  }
  return async (group) => {
    let client: PoolClient | undefined
    try {
      client = await pool.connect()
      const committed = await commitOn(client, group)
      client.release(!committed.ok && committed.error.kind !== 'expired')
      return committed
    } catch (error) {
      // Closing it rolls back. It is not used again after an error.
      client?.release(true)
      return { ok: false, error: toPostgresError(error) }
    }
  }
}

/** Runs the statements on a connection, which prepares each once. */
const runOn =
  (client: PoolClient): RunStatement =>
  async <Row>(name: StatementName, ...values: readonly unknown[]): Promise<readonly Row[]> => {
    const query = { name: `journal_${name}`, text: statements[name], values: values.map(toParameter) }
    const { rows } = await client.query(query)
    // Which columns a statement gives is known where it is run; no driver can check it.
    return rows as Row[]
  }

/** pg takes an array for one of PostgreSQL's. */
const toParameter = (value: unknown): unknown => (Array.isArray(value) ? JSON.stringify(value) : value)
