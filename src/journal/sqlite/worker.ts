/** The thread that opens the SQLite file of a journal, so that an fsync never blocks the thread that serves requests. */
import { accessSync, constants, mkdirSync, openSync, readSync, type Stats, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync, type SQLInputValue } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'

import { AdapterError } from '../../errors.ts'
import { createCommitChanges } from '../core/commit-changes.ts'
import { type Committed, hasPassed, passGate } from '../group-commit.ts'
import {
  createHighWater,
  type HighWater,
  markerOf,
  highWaterFileOf,
  openHighWaterFile,
} from '../high-water.ts'
import { createStatements, type RunStatement, type StatementName } from '../sql.ts'
import type { Group, StoreSecrets } from '../store.ts'
import {
  damagedJournal,
  damageOf,
  gaveUp,
  isSqliteBusy,
  toSqliteCommitError,
  toSqliteError,
} from '../store-error.ts'
import { createSqliteFile } from './create-file.ts'
import type { QueryAnswer, Request, Response, ThreadFailure, ThreadStart } from './store.ts'

const start = workerData as ThreadStart
let opened: { readonly database: DatabaseSync; readonly guard: () => void } | undefined
let highWater: HighWater | undefined
let commit: ((group: Group) => Promise<Committed>) | undefined

/** Opens the file at the first request, so that a failure becomes the response to the request. */
const openFile = (): DatabaseSync => {
  opened ??= { database: openDatabase(start), guard: createFileGuard(start.path) }
  return opened.database
}

const openIntact = (): DatabaseSync => {
  const database = openFile()
  opened?.guard()
  return database
}

async function answer(request: Request): Promise<QueryAnswer | Committed | undefined> {
  switch (request.kind) {
    case 'query':
      return query(request.sql, request.parameters)
    case 'prepare': {
      const { mark } = request.secrets
      highWater = createHighWater(request.secrets, openHighWaterFile(highWaterFileOf(start.path), mark))
      commit = createCommit(openFile(), highWater, request.secrets)
      return undefined
    }
    case 'commit':
      return sendable((await commit?.(request.group)) ?? notPrepared)
    case 'close':
      highWater?.close()
      highWater = undefined
      opened?.database.close()
      opened = undefined
      return undefined
  }
}

let last: Promise<unknown> = Promise.resolve()
parentPort?.on('message', (request: Request) => {
  last = last
    .then(() => answer(request))
    .then(
      (value): Response => ({ value }),
      (error: unknown): Response => ({ failure: toFailure(error) }),
    )
    .then((response) => {
      parentPort?.postMessage(response)
      if (request.kind === 'close') parentPort?.close()
    })
})

const notPrepared: Committed = { ok: false, error: { kind: 'transient', message: 'it is not open yet' } }

/** Converts the error of a result, because an error loses its members between threads. */
const sendable = (committed: Committed): Committed =>
  committed.ok
    ? committed
    : { ok: false, error: { ...committed.error, cause: toFailure(committed.error.cause) } }

const toFailure = (error: unknown): ThreadFailure => ({
  message: error instanceof Error ? error.message : String(error),
  errcode: error instanceof Error && 'errcode' in error ? Number(error.errcode) : errnoCode(error),
  damage: damageOf(error),
})

/** Returns SQLite's code for "cannot open" (14) if the folder or the file could not be created. */
const errnoCode = (error: unknown): number => (error instanceof Error && 'syscall' in error ? 14 : 0)

function query(text: string, parameters: readonly unknown[]): QueryAnswer {
  // Does nothing if an error such as a full disk has already ended the transaction.
  if (text === 'ROLLBACK' && !openFile().isTransaction) return { rows: [], changes: 0 }
  const statement = (text === 'ROLLBACK' ? openFile() : openIntact()).prepare(text)
  // Casts the parameters, because they come from this program, and messages between threads keep the types of values.
  const values = named(parameters as readonly SQLInputValue[])
  if (statement.columns().length > 0) return { rows: statement.all(values), changes: 0 }
  return { rows: [], changes: statement.run(values).changes }
}

const named = (values: readonly SQLInputValue[]): Record<string, SQLInputValue> =>
  Object.fromEntries(values.map((value, index) => [`$${index + 1}`, value]))

/** Makes a group durable with one transaction and one fsync. Never rejects. */
function createCommit(database: DatabaseSync, mark: HighWater, secrets: StoreSecrets): typeof commit {
  const changeRows = createCommitChanges(secrets, mark)
  const run = createRun(database)
  return async (group) => {
    try {
      openIntact().exec('BEGIN IMMEDIATE')
      const changed = await changeRows(run, group, markerOf(group.instance, secrets.process, ''))
      if (!changed.ok || !passGate(group.gate)) {
        database.exec('ROLLBACK')
        return { ok: false, error: changed.ok ? gaveUp : changed.error }
      }
      database.exec('COMMIT')
      mark.reached(group.instance, changed.commits)
      return { ok: true, results: changed.results }
    } catch (error) {
      if (database.isTransaction) database.exec('ROLLBACK')
      return { ok: false, error: (hasPassed(group.gate) ? toSqliteCommitError : toSqliteError)(error) }
    }
  }
}

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
  // Rows are read synchronously. A group waits only for compression in other threads.
  // eslint-disable-next-line @typescript-eslint/require-await
  return async <Row>(name: StatementName, ...values: readonly unknown[]): Promise<readonly Row[]> => {
    // Rejects every statement after a full disk has ended the transaction, because SQLite would commit each on its own.
    if (!database.isTransaction) throw new AdapterError('ADP_INTERNAL', 'The transaction has ended.')
    const execute = prepared.get(name) ?? prepare(name)
    prepared.set(name, execute)
    const [rows] = values
    const all = Array.isArray(rows) ? rows : [named(values as readonly SQLInputValue[])]
    // Casts the rows, because the driver does not know the columns of a statement.
    return all.flatMap((row: Record<string, SQLInputValue>) => execute(row)) as Row[]
  }
}

/** Opens the database. Creates a missing file unless `existing` is true. Only the owner of the file can read a new file. */
function openDatabase({ path, existing, busyMs }: ThreadStart): DatabaseSync {
  if (existing) accessSync(path, constants.W_OK)
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  createSqliteFile(path)
  const database = new DatabaseSync(path, { timeout: busyMs })
  useWal(database, busyMs)
  return database
}

const RETRY_AFTER_MS = 10

/**
 * Turns on WAL with synchronous FULL, because with synchronous NORMAL a commit makes no fsync. If two connections switch a new file at the
 * same moment, SQLite rejects one connection at once, so this function retries.
 */
function useWal(database: DatabaseSync, busyMs: number): void {
  const untilMs = performance.now() + busyMs
  for (;;) {
    try {
      database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL')
      return
    } catch (error) {
      if (!isSqliteBusy(error) || performance.now() >= untilMs) throw error
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, RETRY_AFTER_MS)
    }
  }
}

/**
 * Creates the check that the files of an opened database are still the files at its path. SQLite keeps writing to a deleted or renamed
 * file, and that data is lost when the process ends. While the database is in use, only a `VACUUM` of another process may shorten the file,
 * so any other shorter file is damage. The check throws `ADP_JOURNAL_DAMAGED`.
 */
function createFileGuard(path: string): () => void {
  const log = `${path}-wal`
  const opened = statSync(path)
  let size = opened.size
  let openedLog: Stats | undefined
  let file: number | undefined
  return () => {
    const now = statSync(path, { throwIfNoEntry: false })
    if (now === undefined) throw damagedJournal('its file was deleted or renamed while it was in use')
    if (!isSame(now, opened)) throw damagedJournal('another file replaced its file while it was in use')
    // This descriptor stays open, because closing it would release the locks of this process on the file (`createSqliteFile`).
    if (now.size < size && !endsWithItsPages((file ??= openSync(path, 'r')), now.size))
      throw damagedJournal('its file was truncated while it was in use')
    size = now.size
    const logNow = statSync(log, { throwIfNoEntry: false })
    if (openedLog === undefined) openedLog = logNow
    else if (logNow === undefined) throw damagedJournal('its log (-wal) was deleted while it was in use')
    else if (!isSame(logNow, openedLog))
      throw damagedJournal('another file replaced its log (-wal) while it was in use')
  }
}

/** Returns true if a file has the length that its header states (sqlite.org/fileformat.html, 1.3). SQLite itself then shortened the file. */
function endsWithItsPages(file: number, size: number): boolean {
  const header = Buffer.alloc(32)
  if (readSync(file, header, 0, header.length, 0) < header.length) return false
  const written = header.readUInt16BE(16)
  // The value 1 stands for 65,536, which does not fit in two bytes.
  return (written === 1 ? 65_536 : written) * header.readUInt32BE(28) === size
}

const isSame = (one: Stats, other: Stats): boolean => one.ino === other.ino && one.dev === other.dev
