import { Worker } from 'node:worker_threads'

import { AdapterError } from '../../errors.ts'
import type { Committed, Group, StoreSecrets } from '../store/store.ts'
import type { QueryAnswer, WorkerAnswer, WorkerQuestion, WorkerStart } from './worker-messages.ts'

/** The thread of a database, as the others talk to it. Rejects with a `WorkerFailure`, or once it has stopped. */
export interface DatabaseThread {
  query(sql: string, parameters: readonly unknown[]): Promise<QueryAnswer>
  prepare(secrets: StoreSecrets): Promise<void>
  commit(group: Group): Promise<Committed>
  close(): Promise<void>
}

interface Waiting {
  readonly resolve: (answer: WorkerAnswer) => void
  readonly reject: (reason: unknown) => void
}

/** A question without its number. */
type Question = WorkerQuestion extends infer One ? (One extends unknown ? Omit<One, 'id'> : never) : never

/** The file beside this one, as built or as source. */
const WORKER = new URL(import.meta.url.endsWith('.ts') ? './worker.ts' : './worker.js', import.meta.url)

/** Starts the thread. Nothing is opened before the first question. */
export function startDatabaseThread(start: WorkerStart): DatabaseThread {
  const worker = new Worker(WORKER, { workerData: start, execArgv: [], name: 'markbridge-journal' })
  const waiting = new Map<number, Waiting>()
  let questions = 0
  let stopped: AdapterError | undefined
  let closing: Promise<void> | undefined
  const stop = (cause: unknown): void => {
    stopped ??= new AdapterError('ADP_JOURNAL_UNAVAILABLE', 'The thread of the journal has stopped.', {
      cause,
    })
    for (const { reject } of waiting.values()) reject(stopped)
    waiting.clear()
  }
  worker.on('message', (answer: WorkerAnswer) => {
    const asked = waiting.get(answer.id)
    waiting.delete(answer.id)
    if (waiting.size === 0) worker.unref()
    if (answer.kind === 'failed') asked?.reject(answer.failure)
    else asked?.resolve(answer)
  })
  worker.on('error', stop)
  worker.on('exit', () => stop(undefined))
  worker.unref()
  const ask = (question: Question): Promise<WorkerAnswer> => {
    if (stopped !== undefined) return Promise.reject(stopped)
    return new Promise((resolve, reject) => {
      const id = ++questions
      waiting.set(id, { resolve, reject })
      // A program may end while nothing is asked, never while something is.
      worker.ref()
      worker.postMessage({ ...question, id })
    })
  }
  return {
    query: async (sql, parameters) => {
      const reply = await ask({ kind: 'query', sql, parameters })
      return reply.kind === 'query' ? reply.answer : { rows: [], changes: 0 }
    },
    prepare: async (secrets) => {
      await ask({ kind: 'prepare', secrets })
    },
    commit: async (group) => {
      const reply = await ask({ kind: 'commit', group })
      if (reply.kind === 'commit') return reply.committed
      return { ok: false, error: { kind: 'transient', message: 'it gave no answer' } }
    },
    close: () =>
      (closing ??= ask({ kind: 'close' }).then(
        async () => {
          await worker.terminate()
        },
        async () => {
          await worker.terminate()
        },
      )),
  }
}
