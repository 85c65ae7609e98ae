/** The thread that holds the SQLite file of a journal: an fsync never stops the one that serves. */
import {
  accessSync,
  closeSync,
  constants,
  mkdirSync,
  openSync,
  readSync,
  type Stats,
  statSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync, type SQLInputValue } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'

import { AdapterError } from '../../errors.ts'
import { createCommitChanges } from '../core/commit-changes.ts'
import { type Committed, hasPassed, passGate } from '../group-commit.ts'
import { createHighWater, type HighWater, markerOf, markFileOf, openMarkFile } from '../high-water.ts'
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
import type { QueryAnswer, Request, Response, ThreadFailure, ThreadStart } from './store.ts'

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

async function answer(request: Request): Promise<QueryAnswer | Committed | undefined> {
  switch (request.kind) {
    case 'query':
      return query(request.sql, request.parameters)
    case 'prepare': {
      const { mark } = request.secrets
      highWater = createHighWater(request.secrets, openMarkFile(markFileOf(start.path), mark))
      commit = createCommit(open(), highWater, request.secrets)
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

/**
 * Opens the file of a journal, readable for its owner alone, and creates it where there is none. A commit is on the disk
 * before it returns: synchronous FULL, since WAL with NORMAL makes no fsync at all.
 */
function openDatabase({ path, existing, busyMs }: ThreadStart): DatabaseSync {
  if (existing) accessSync(path, constants.W_OK)
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  // The files beside it (-wal, -shm) get the same rights from SQLite.
  closeSync(openSync(path, 'a', 0o600))
  const database = new DatabaseSync(path, { timeout: busyMs })
  useWal(database, busyMs)
  return database
}

const RETRY_AFTER_MS = 10

/** SQLite does not wait `busyMs` where two connections turn a new file to WAL at the same moment: one of them is refused at once. */
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
 * Creates what checks that the files of a database that was just opened are still those that the path names. SQLite writes on into a
 * file that was deleted or renamed, and what it writes is gone with the process. Neither file gets shorter in use, except the log by a
 * checkpoint that truncates it, and the file by a `VACUUM` of another process. Error: `ADP_JOURNAL_DAMAGED`.
 */
function createFileGuard(path: string): () => void {
  const log = `${path}-wal`
  const opened = statSync(path)
  let size = opened.size
  let openedLog: Stats | undefined
  return () => {
    const now = statSync(path, { throwIfNoEntry: false })
    if (now === undefined) throw damagedJournal('its file was deleted or renamed while it was in use')
    if (!isSame(now, opened)) throw damagedJournal('another file has taken its place while it was in use')
    if (now.size < size && !endsWithItsPages(path, now.size))
      throw damagedJournal('its file was cut short while it was in use')
    size = now.size
    const logNow = statSync(log, { throwIfNoEntry: false })
    if (openedLog === undefined) openedLog = logNow
    else if (logNow === undefined) throw damagedJournal('its log (-wal) was deleted while it was in use')
    else if (!isSame(logNow, openedLog)) throw damagedJournal('another log (-wal) has taken its place')
  }
}

/** True for a file of the length that its header says (sqlite.org/fileformat.html, 1.3): SQLite shortened it, and no cut did. */
function endsWithItsPages(path: string, size: number): boolean {
  const header = Buffer.alloc(32)
  const file = openSync(path, 'r')
  try {
    if (readSync(file, header, 0, header.length, 0) < header.length) return false
  } finally {
    closeSync(file)
  }
  const written = header.readUInt16BE(16)
  // 1 stands for 65,536, which has no room in two bytes.
  return (written === 1 ? 65_536 : written) * header.readUInt32BE(28) === size
}

const isSame = (one: Stats, other: Stats): boolean => one.ino === other.ino && one.dev === other.dev
