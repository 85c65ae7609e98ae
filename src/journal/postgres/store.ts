import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'

import { Kysely, PostgresDialect, sql } from 'kysely'
import type { Pool, PoolClient } from 'pg'

import { AdapterError } from '../../errors.ts'
import { createCommitChanges } from '../core/commit-changes.ts'
import { type Committed, type Operation, type OperationResult, passGate } from '../group-commit.ts'
import {
  createHighWater,
  type HighWater,
  type HighWaterMark,
  type HighWaterFile,
  markerOf,
  openHighWaterFile,
  slotOf,
  unusableMark,
} from '../high-water.ts'
import { createStatements, type RunStatement, type StatementName } from '../sql.ts'
import type { Group, Store, StoreSecrets } from '../store.ts'
import { gaveUp, type StoreError } from '../store-error.ts'
import type { JournalTables } from '../schema.ts'
import { connectPostgres, expectSessions, placeOf } from './connections.ts'
import { toPostgresError } from './failures.ts'

interface PostgresOptions {
  readonly url: string
  readonly timeoutMs: number
  /** The path of the high-water file, or `undefined` if the store keeps the mark only in memory. */
  readonly highWaterFile: string | undefined
}

/** The lock that every change of batches and records takes, so that in all instances the numbers of batches follow the order of commits. */
const ORDER_LOCK = 7_238_519_461
const LOCK = `select pg_advisory_xact_lock(${ORDER_LOCK})`

/** Creates the store of a PostgreSQL database, which several instances may share. Needs PostgreSQL 13 or newer. */
export function createPostgresStore({ url, timeoutMs, highWaterFile: path }: PostgresOptions): Store {
  const pool = connectPostgres(url, { timeoutMs })
  const db = new Kysely<JournalTables>({ dialect: new PostgresDialect({ pool }) })
  // A missing high-water file is no damage: the first instance on a machine has no earlier state with which to compare the journal.
  const highWaterFile = path === undefined ? undefined : { path, required: false }
  let highWater: HighWater | undefined
  let commit: Store['commit'] | undefined
  return {
    dialect: 'postgres',
    place: placeOf(url),
    db,
    exclusively: (work) =>
      db
        .transaction()
        .setIsolationLevel('read committed')
        .execute(async (transaction) => {
          await sql.raw(LOCK).execute(transaction)
          return work(transaction)
        }),
    highWaterFile,
    findDamage: async () => {
      await expectSessions(pool)
      return undefined
    },
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

/** Opens the high-water file, and creates its folder if the folder is missing. Throws `ADP_CONFIGURATION` if the file cannot be opened. */
function openMarkFile(path: string, mark: HighWaterMark): HighWaterFile {
  try {
    mkdirSync(dirname(path), { recursive: true })
    return openHighWaterFile(path, mark)
  } catch (cause) {
    throw unusableMark(path, cause)
  }
}

const rolledBack: StoreError = { kind: 'transient', message: 'the database rolled back' }
const statements = createStatements('postgres')

interface Doubt {
  readonly instance: number
  readonly marker: string
  readonly results: ReadonlyMap<Operation, OperationResult>
}

/** Creates the function that makes a group durable in one transaction. The function never rejects. */
export function createCommit(
  pool: Pool,
  highWater: HighWater,
  secrets: StoreSecrets,
): (group: Group) => Promise<Committed> {
  const changeRows = createCommitChanges(secrets, highWater)
  let groups = 0
  let doubt: Doubt | undefined
  /** Results of operations that were found to be durable, or whose result can no longer be found out. */
  const resolved = new WeakMap<Operation, OperationResult>()

  const resolve = async (run: RunStatement, { instance, marker, results }: Doubt): Promise<void> => {
    const [lastGroup] = await run<{ marker: string | null }>('findMarker', slotOf(instance))
    // Compares markers, because the number of a transaction proves nothing: after a crash the server reuses numbers that it had not stored.
    if (lastGroup?.marker === marker) for (const one of results) resolved.set(...one)
    // If another instance has used the slot since, the result cannot be found out. Recovery finishes the batch if the batch was stored.
    else if (lastGroup?.marker?.startsWith(markerOf(instance, secrets.process, '')) === false)
      for (const [one] of results) if (one.kind === 'begin') resolved.set(one, 'doubtful')
    doubt = undefined
  }
  const commitOn = async (client: PoolClient, group: Group): Promise<Committed> => {
    const run = runOn(client)
    const begun = client.query(`begin isolation level read committed; ${LOCK}`)
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
      // Checks the command of the response, because PostgreSQL answers COMMIT with ROLLBACK if an earlier statement failed.
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
      // Closes the connection after any error, which rolls the transaction back.
      client?.release(true)
      return { ok: false, error: toPostgresError(error) }
    }
  }
}

/** Runs the statements on a connection, which prepares each statement once. */
const runOn =
  (client: PoolClient): RunStatement =>
  async <Row>(name: StatementName, ...values: readonly unknown[]): Promise<readonly Row[]> => {
    const query = { name: `journal_${name}`, text: statements[name], values: values.map(toParameter) }
    const { rows } = await client.query(query)
    // Casts the rows, because the driver does not know the columns of a statement.
    return rows as Row[]
  }

/** Encodes arrays as JSON, because `pg` would send them as PostgreSQL arrays. */
const toParameter = (value: unknown): unknown => (Array.isArray(value) ? JSON.stringify(value) : value)
