/** The thread that holds the SQLite file of a journal: an fsync never stops the one that serves. */
import type { DatabaseSync, SQLInputValue } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'

import { AdapterError } from '../../errors.ts'
import { createCommitChanges } from '../core/commit-changes.ts'
import { hasPassed, passGate } from '../group-commit.ts'
import { createHighWater, type HighWater, openMarkFile } from '../high-water.ts'
import { createStatements, type RunStatement, type StatementName } from '../sql.ts'
import type { Group, StoreSecrets } from '../store.ts'
import { damageOf, gaveUp } from '../store-error.ts'
import type { Committed } from '../group-commit.ts'
import { createFileGuard, markFileOf, openDatabase } from './file.ts'
import type { Numbered, QueryAnswer, Request, Response, ThreadFailure, ThreadStart } from './thread.ts'
import { toCommitError, toStoreError } from './to-store-error.ts'

const start = workerData as ThreadStart
let opened: { readonly database: DatabaseSync; readonly guard: () => void } | undefined
let highWater: HighWater | undefined
let commit: ((group: Group) => Promise<Committed>) | undefined

/** Opened by the first request, so that a file that cannot be opened is a response. */
const open = (): DatabaseSync => {
  opened ??= { database: openDatabase(start), guard: createFileGuard(start.path) }
  return opened.database
}

const openIntact = (): DatabaseSync => {
  const database = open()
  opened?.guard()
  return database
}

function query(text: string, parameters: readonly unknown[]): QueryAnswer {
  // An error may have ended the transaction already (a full disk does): then nothing is left to roll back.
  if (text === 'ROLLBACK' && !open().isTransaction) return { rows: [], changes: 0 }
  const statement = (text === 'ROLLBACK' ? open() : openIntact()).prepare(text)
  // What Kysely binds comes from this program, and the messages keep its types.
  const values = named(parameters as readonly SQLInputValue[])
  if (statement.columns().length > 0) return { rows: statement.all(values), changes: 0 }
  return { rows: [], changes: statement.run(values).changes }
}

/** `$1` is the name of a parameter here. */
const named = (values: readonly SQLInputValue[]): Record<string, SQLInputValue> =>
  Object.fromEntries(values.map((value, index) => [`$${index + 1}`, value]))

/** Creates what makes a group durable: one transaction, one fsync. Never rejects. */
function createCommit(database: DatabaseSync, mark: HighWater, secrets: StoreSecrets): typeof commit {
  const changeRows = createCommitChanges(secrets, mark)
  const run = createRun(database)
  return async (group) => {
    try {
      openIntact().exec('BEGIN IMMEDIATE')
      const changed = await changeRows(run, group, '')
      if (!changed.ok || !passGate(group.gate)) {
        database.exec('ROLLBACK')
        return { ok: false, error: changed.ok ? gaveUp : changed.error }
      }
      database.exec('COMMIT')
      mark.reached(group.instance, changed.commits)
      return { ok: true, results: changed.results }
    } catch (error) {
      if (database.isTransaction) database.exec('ROLLBACK')
      return { ok: false, error: (hasPassed(group.gate) ? toCommitError : toStoreError)(error) }
    }
  }
}

/** Prepares each statement once. */
function createRun(database: DatabaseSync): RunStatement {
  const statements = createStatements('sqlite')
  const prepared = new Map<StatementName, (values: Record<string, SQLInputValue>) => unknown[]>()
  const prepare = (name: StatementName) => {
    const statement = database.prepare(statements[name])
    const isRead = statement.columns().length > 0
    return (values: Record<string, SQLInputValue>): unknown[] => {
      if (isRead) return statement.all(values)
      statement.run(values)
      return []
    }
  }
  // The rows are read at once: nothing of a group waits but for what is compressed aside.
  // eslint-disable-next-line @typescript-eslint/require-await
  return async <Row>(name: StatementName, ...values: readonly unknown[]): Promise<readonly Row[]> => {
    // A full disk ends the transaction: what follows would be kept by itself.
    if (!database.isTransaction) throw new AdapterError('ADP_INTERNAL', 'The transaction has ended.')
    const execute = prepared.get(name) ?? prepare(name)
    prepared.set(name, execute)
    const [rows] = values
    const all = Array.isArray(rows) ? rows : [named(values as readonly SQLInputValue[])]
    // Which columns a statement gives and takes is known where it is run; no driver can check it.
    return all.flatMap((row: Record<string, SQLInputValue>) => execute(row)) as Row[]
  }
}

async function answer(request: Request): Promise<Response> {
  switch (request.kind) {
    case 'query':
      return query(request.sql, request.parameters)
    case 'prepare': {
      const { mark } = request.secrets
      highWater = createHighWater(mark, openMarkFile(markFileOf(start.path), mark))
      commit = createCommit(open(), highWater, request.secrets)
      return 'done'
    }
    case 'commit':
      return sendable((await commit?.(request.group)) ?? notPrepared)
    case 'close':
      highWater?.close()
      highWater = undefined
      opened?.database.close()
      opened = undefined
      return 'done'
  }
}

const notPrepared: Committed = { ok: false, error: { kind: 'transient', message: 'it is not open yet' } }

/** Errors lose their members between threads. */
const sendable = (committed: Committed): Committed =>
  committed.ok
    ? committed
    : { ok: false, error: { ...committed.error, cause: toFailure(committed.error.cause) } }

const toFailure = (error: unknown): ThreadFailure => ({
  message: error instanceof Error ? error.message : String(error),
  errcode: error instanceof Error && 'errcode' in error ? Number(error.errcode) : errnoCode(error),
  damage: damageOf(error),
})

/** The folder or the file could not be made: as if SQLite could not open it. */
const errnoCode = (error: unknown): number => (error instanceof Error && 'syscall' in error ? 14 : 0)

parentPort?.on('message', ({ id, content }: Numbered<Request>) => {
  void answer(content)
    .catch((error: unknown): Response => ({ failure: toFailure(error) }))
    .then((response) => {
      parentPort?.postMessage({ id, content: response } satisfies Numbered<Response>)
      if (content.kind === 'close') parentPort?.close()
    })
})
