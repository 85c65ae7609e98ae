import { Worker } from 'node:worker_threads'

import { type CompiledQuery, type DatabaseConnection, type Driver, type QueryResult } from 'kysely'

import { AdapterError } from '../../errors.ts'
import type { Group, StoreSecrets } from '../store.ts'
import type { Committed } from '../group-commit.ts'

/** The options of the thread. */
export interface ThreadStart {
  readonly path: string
  /** True: a file that is not there is an error. */
  readonly existing: boolean
  /** How long a lock of another process is waited for. */
  readonly busyMs: number
}

/** Requests to the thread. Each has one response with its number. */
export type Request =
  | { readonly kind: 'query'; readonly sql: string; readonly parameters: readonly unknown[] }
  | { readonly kind: 'prepare'; readonly secrets: StoreSecrets }
  | { readonly kind: 'commit'; readonly group: Group }
  | { readonly kind: 'close' }

/** The rows of a query, and how many it changed. */
export interface QueryAnswer {
  readonly rows: readonly Record<string, unknown>[]
  readonly changes: number | bigint
}

/** An error as it can be sent to another thread: with the code of SQLite, or what it says of a damaged journal. */
export interface ThreadFailure {
  readonly message: string
  readonly errcode: number
  readonly damage: string | undefined
}

export interface Numbered<Content> {
  readonly id: number
  readonly content: Content
}

/** What the thread answers. */
export type Response = QueryAnswer | Committed | { readonly failure: ThreadFailure } | 'done'

/** The thread that holds the file of a journal, as the others talk to it. Rejects with a `ThreadFailure`, or once it has stopped. */
interface DatabaseThread {
  readonly driver: Driver
  prepare(secrets: StoreSecrets): Promise<void>
  commit(group: Group): Promise<Committed>
}

interface Waiting {
  readonly resolve: (response: Response) => void
  readonly reject: (reason: unknown) => void
}

/** The file beside this one, as built or as source. */
const WORKER = new URL(import.meta.url.endsWith('.ts') ? './worker.ts' : './worker.js', import.meta.url)

/** Starts the thread. Nothing is opened before the first request. */
export function startDatabaseThread(start: ThreadStart): DatabaseThread {
  const ask = startWorker(start)
  /** One connection, which groups and transactions use one after another. */
  let last: Promise<void> = Promise.resolve()
  const lock = async (): Promise<() => void> => {
    const before = last
    let unlock = (): void => undefined
    last = new Promise((resolve) => {
      unlock = resolve
    })
    await before
    return unlock
  }
  const unlocks = new WeakMap<DatabaseConnection, () => void>()
  const connect = (): DatabaseConnection => ({
    executeQuery: async <Row>({ sql, parameters }: CompiledQuery): Promise<QueryResult<Row>> => {
      const answer = await ask({ kind: 'query', sql, parameters })
      if (answer === 'done' || !('rows' in answer)) throw unexpected()
      // Kysely derives the type of a row from the query; no driver can check it.
      return { rows: answer.rows as unknown as Row[], numAffectedRows: BigInt(answer.changes) }
    },
    streamQuery: () => {
      throw new AdapterError('ADP_INTERNAL', 'The journal reads no streams.')
    },
  })
  const exec = async (sql: string): Promise<void> => {
    await ask({ kind: 'query', sql, parameters: [] })
  }
  let closing: Promise<unknown> | undefined
  return {
    driver: {
      init: () => Promise.resolve(),
      acquireConnection: async () => {
        const unlock = await lock()
        const connection = connect()
        unlocks.set(connection, unlock)
        return connection
      },
      // A reader takes no lock; a writer takes it at once, since a lock that is wanted later cannot be waited for.
      beginTransaction: (_connection, settings) =>
        exec(settings.accessMode === 'read only' ? 'BEGIN' : 'BEGIN IMMEDIATE'),
      commitTransaction: () => exec('COMMIT'),
      rollbackTransaction: () => exec('ROLLBACK'),
      releaseConnection: (connection) => {
        unlocks.get(connection)?.()
        return Promise.resolve()
      },
      destroy: async () => {
        await (closing ??= ask({ kind: 'close' }).catch(() => undefined))
      },
    },
    prepare: async (secrets) => {
      await ask({ kind: 'prepare', secrets })
    },
    commit: async (group) => {
      const unlock = await lock()
      try {
        const committed = await ask({ kind: 'commit', group })
        if (committed === 'done' || !('ok' in committed)) throw unexpected()
        return committed
      } finally {
        unlock()
      }
    },
  }
}

const unexpected = (): AdapterError =>
  new AdapterError('ADP_INTERNAL', 'Internal error: unexpected response of the journal thread.')

/** Starts the worker; gives what asks it, which resolves with its response. It ends with the response to `close`. */
function startWorker(start: ThreadStart): (request: Request) => Promise<Response> {
  const worker = new Worker(WORKER, { workerData: start, execArgv: [], name: 'markbridge-journal' })
  const waiting = new Map<number, Waiting>()
  let requests = 0
  let stopped: AdapterError | undefined
  const stop = (cause: unknown): void => {
    stopped ??= new AdapterError('ADP_JOURNAL_UNAVAILABLE', 'The thread of the journal has stopped.', {
      cause,
    })
    for (const { reject } of waiting.values()) reject(stopped)
    waiting.clear()
  }
  worker.on('message', ({ id, content }: Numbered<Response>) => {
    const asked = waiting.get(id)
    waiting.delete(id)
    if (waiting.size === 0) worker.unref()
    if (content !== 'done' && 'failure' in content) asked?.reject(content.failure)
    else asked?.resolve(content)
  })
  worker.on('error', stop)
  worker.on('exit', () => stop(undefined))
  worker.unref()
  return async (request) => {
    if (stopped !== undefined) throw stopped
    const response = await new Promise<Response>((resolve, reject) => {
      const id = ++requests
      waiting.set(id, { resolve, reject })
      // A program may end while nothing is asked, never while something is.
      worker.ref()
      worker.postMessage({ id, content: request } satisfies Numbered<Request>)
    })
    if (request.kind === 'close') await worker.terminate()
    return response
  }
}
