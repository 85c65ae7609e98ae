/** The thread that holds the SQLite file of a journal: an fsync never stops the one that serves. */
import type { DatabaseSync, SQLInputValue } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'

import { createHighWater, type HighWater } from '../high-water/high-water.ts'
import { openMarkFile } from '../high-water/mark-file.ts'
import { damageOf } from '../store/damage.ts'
import type { Committed, Group } from '../store/store.ts'
import { createCommitGroup } from './commit-group.ts'
import { createFileGuard, type FileGuard } from './file-guard.ts'
import { markFileOf, openDatabase } from './open-database.ts'
import type {
  QueryAnswer,
  WorkerAnswer,
  WorkerFailure,
  WorkerQuestion,
  WorkerStart,
} from './worker-messages.ts'

const start = workerData as WorkerStart
let database: DatabaseSync | undefined
let guard: FileGuard | undefined
let highWater: HighWater | undefined
let commitGroup: ((group: Group) => Committed) | undefined

/** Opened by the first question, so that a file that cannot be opened is an answer. */
const open = (): DatabaseSync => {
  if (database !== undefined) return database
  database = openDatabase(start)
  guard = createFileGuard(start.path)
  return database
}

const expectIntact = (): void => {
  open()
  guard?.check()
}

const query = (text: string, parameters: readonly unknown[]): QueryAnswer => {
  // An error may have ended the transaction already (a full disk does): then nothing is left to roll back.
  if (text === 'ROLLBACK' && !open().isTransaction) return { rows: [], changes: 0 }
  if (text !== 'ROLLBACK') expectIntact()
  const statement = open().prepare(text)
  // What Kysely binds comes from this program, and the messages keep its types.
  const values = parameters as readonly SQLInputValue[]
  if (statement.columns().length > 0) return { rows: statement.all(...values), changes: 0 }
  return { rows: [], changes: statement.run(...values).changes }
}

const answer = (question: WorkerQuestion): WorkerAnswer => {
  const { id } = question
  switch (question.kind) {
    case 'query':
      return { id, kind: 'query', answer: query(question.sql, question.parameters) }
    case 'prepare':
      highWater = createHighWater(
        question.secrets.mark,
        openMarkFile(markFileOf(start.path), question.secrets.mark),
      )
      commitGroup = createCommitGroup(
        open(),
        { check: expectIntact, highWater },
        question.secrets,
        start.replayForMs,
      )
      return { id, kind: 'done' }
    case 'commit':
      return { id, kind: 'commit', committed: sendable(commitGroup?.(question.group) ?? notPrepared) }
    case 'close':
      highWater?.close()
      highWater = undefined
      database?.close()
      database = undefined
      return { id, kind: 'done' }
  }
}

const notPrepared: Committed = { ok: false, error: { kind: 'transient', message: 'it is not open yet' } }

/** Errors lose their members between threads. */
const sendable = (committed: Committed): Committed =>
  committed.ok
    ? committed
    : { ok: false, error: { ...committed.error, cause: toFailure(committed.error.cause) } }

const toFailure = (error: unknown): WorkerFailure => {
  const damage = damageOf(error)
  return {
    message: error instanceof Error ? error.message : String(error),
    errcode: error instanceof Error && 'errcode' in error ? Number(error.errcode) : errnoCode(error),
    ...(damage === undefined ? {} : { damage }),
  }
}

/** The folder or the file could not be made: as if SQLite could not open it. */
const errnoCode = (error: unknown): number => (error instanceof Error && 'syscall' in error ? 14 : 0)

parentPort?.on('message', (question: WorkerQuestion) => {
  let reply: WorkerAnswer
  try {
    reply = answer(question)
  } catch (error) {
    reply = { id: question.id, kind: 'failed', failure: toFailure(error) }
  }
  parentPort?.postMessage(reply)
  if (question.kind === 'close') parentPort?.close()
})
