import { statSync } from 'node:fs'
import { Worker } from 'node:worker_threads'

import {
  type CompiledQuery,
  type Driver,
  Kysely,
  type QueryResult,
  sql,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely'

import { AdapterError } from '../../errors.ts'
import { type Committed, hasPassed } from '../group-commit.ts'
import { findMissingFile, highWaterFileOf } from '../high-water.ts'
import type { JournalTables } from '../schema.ts'
import type { Group, Store, StoreSecrets } from '../store.ts'
import { toSqliteError } from '../store-error.ts'

export interface ThreadStart {
  readonly path: string
  readonly existing: boolean
  /** How long to wait for a lock of another process, in milliseconds. */
  readonly busyMs: number
}

/** A request to the thread. The thread answers requests in the order in which they were sent. */
export type Request =
  | { readonly kind: 'query'; readonly sql: string; readonly parameters: readonly unknown[] }
  | { readonly kind: 'prepare'; readonly secrets: StoreSecrets }
  | { readonly kind: 'commit'; readonly group: Group }
  | { readonly kind: 'close' }

export interface QueryAnswer {
  readonly rows: readonly Record<string, unknown>[]
  readonly changes: number | bigint
}

/** An error in a form that can be sent to another thread, with SQLite's result code or the damage of the journal. */
export interface ThreadFailure {
  readonly message: string
  readonly errcode: number
  readonly damage: string | undefined
}

/** The thread's response: a `QueryAnswer`, a `Committed`, nothing, or a failure. */
export type Response = { readonly value: unknown } | { readonly failure: ThreadFailure }

interface SqliteOptions extends ThreadStart {
  /** Returns milliseconds since the epoch. All processes that share the file must use the same clock. */
  readonly wallMs: () => number
}

/** Maximum size in bytes of a file that is checked at the start. Reading a file of this size takes a fraction of a second. */
const CHECKED_BYTES = 64 * 1024 * 1024

const WORKER = new URL(import.meta.url.endsWith('.ts') ? './worker.ts' : './worker.js', import.meta.url)

/** Creates the store of one SQLite file, which a separate thread opens. Several processes may share the file. */
export function createSqliteStore({ wallMs, ...start }: SqliteOptions): Store {
  const { path } = start
  const highWaterFile = { path: highWaterFileOf(path), required: true }
  const ask = startWorker(start)
  const lock = createLock()
  const db = new Kysely<JournalTables>({
    dialect: {
      createDriver: () => createDriver(ask, lock),
      createQueryCompiler: () => new NumberedQueryCompiler(),
      createAdapter: () => new SqliteAdapter(),
      createIntrospector: (of) => new SqliteIntrospector(of),
    },
  })
  return {
    dialect: 'sqlite',
    place: `sqlite:${path}`,
    db,
    highWaterFile,
    // Checks no file above `CHECKED_BYTES`, because the check reads the whole file. SQLite still detects a damaged page when it reads the page.
    findDamage: async () => {
      const missing = findMissingFile(path, highWaterFile.path)
      const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0
      return missing !== undefined || size === 0 || size > CHECKED_BYTES ? missing : findBrokenPage(db)
    },
    checkIntegrity: () => findBrokenPage(db),
    exclusively: (work) => db.transaction().execute(work),
    nowMs: () => sql<number>`${Math.round(wallMs())}`,
    prepare: async (secrets) => {
      await ask({ kind: 'prepare', secrets })
    },
    commit: async (group) => {
      const unlock = await lock()
      try {
        return (await ask({ kind: 'commit', group })) as Committed
      } catch (error) {
        const storeError = toSqliteError(error)
        // Once the group has passed the gate, the thread may have failed during the commit, so the group may be stored or not.
        return { ok: false, error: hasPassed(group.gate) ? { ...storeError, kind: 'doubtful' } : storeError }
      } finally {
        unlock()
      }
    },
    toStoreError: toSqliteError,
    close: () => db.destroy(),
  }
}

/** Names parameters as PostgreSQL does, so that both databases use the same SQL. */
class NumberedQueryCompiler extends SqliteQueryCompiler {
  protected override getCurrentParameterPlaceholder(): string {
    return `$${this.numParameters}`
  }
}

async function findBrokenPage(db: Kysely<JournalTables>): Promise<string | undefined> {
  const { rows } = await sql<{ integrity_check: string }>`pragma integrity_check(1)`.execute(db)
  const found = rows[0]?.integrity_check ?? ''
  if (found === 'ok') return undefined
  return / (missing from|in) index /.test(found)
    ? 'an index of its file does not match its table (PRAGMA integrity_check)'
    : 'its file has broken pages (PRAGMA integrity_check)'
}

/** Waits for the connection. Resolves with the function that frees the connection. */
type Lock = () => Promise<() => void>

function createLock(): Lock {
  let last: Promise<void> = Promise.resolve()
  return async () => {
    const before = last
    let unlock = (): void => undefined
    last = new Promise((resolve) => {
      unlock = resolve
    })
    await before
    return unlock
  }
}

type Ask = (request: Request) => Promise<unknown>

function createDriver(ask: Ask, lock: Lock): Driver {
  const exec = async (text: string): Promise<void> => {
    await ask({ kind: 'query', sql: text, parameters: [] })
  }
  const connection = {
    executeQuery: async <Row>({ sql: text, parameters }: CompiledQuery): Promise<QueryResult<Row>> => {
      const { rows, changes } = (await ask({ kind: 'query', sql: text, parameters })) as QueryAnswer
      // Casts the rows, because Kysely derives their type from the query and the driver does not know it.
      return { rows: rows as unknown as Row[], numAffectedRows: BigInt(changes) }
    },
    streamQuery: () => {
      throw new AdapterError('ADP_INTERNAL', 'The journal reads no streams.')
    },
  }
  let unlock = (): void => undefined
  let closing: Promise<unknown> | undefined
  return {
    init: () => Promise.resolve(),
    acquireConnection: async () => {
      unlock = await lock()
      return connection
    },
    // A writer takes the write lock at the start, because SQLite does not wait for a lock that a reader requests later.
    beginTransaction: (_connection, settings) =>
      exec(settings.accessMode === 'read only' ? 'BEGIN' : 'BEGIN IMMEDIATE'),
    commitTransaction: () => exec('COMMIT'),
    rollbackTransaction: () => exec('ROLLBACK'),
    releaseConnection: () => {
      unlock()
      return Promise.resolve()
    },
    destroy: async () => {
      await (closing ??= ask({ kind: 'close' }).catch(() => undefined))
    },
  }
}

/**
 * Starts the thread, which opens the file at the first request. Returns the function that sends a request. The function rejects with a
 * `ThreadFailure`, or with an error if the thread has stopped. The thread ends after it has answered `close`.
 */
function startWorker(start: ThreadStart): Ask {
  const worker = new Worker(WORKER, {
    ...{ workerData: start, execArgv: [], name: 'markbridge-journal' },
    // By default, the end of a thread closes its descriptors. That would release the locks of other threads on the file.
    trackUnmanagedFds: false,
  })
  let waiting: { readonly resolve: (value: unknown) => void; readonly reject: (cause: unknown) => void }[] =
    []
  let stopped: AdapterError | undefined
  const stop = (cause: unknown): void => {
    stopped ??= new AdapterError('ADP_JOURNAL_UNAVAILABLE', 'The thread of the journal has stopped.', {
      cause,
    })
    for (const { reject } of waiting) reject(stopped)
    waiting = []
  }
  worker.on('message', (response: Response) => {
    const asked = waiting.shift()
    if (waiting.length === 0) worker.unref()
    if ('failure' in response) asked?.reject(response.failure)
    else asked?.resolve(response.value)
  })
  worker.on('error', stop)
  worker.on('exit', () => stop(undefined))
  worker.unref()
  return async (request) => {
    if (stopped !== undefined) throw stopped
    const value = await new Promise<unknown>((resolve, reject) => {
      worker.postMessage(request)
      waiting.push({ resolve, reject })
      // Keeps the program alive only while a request to the thread is unanswered.
      worker.ref()
    })
    if (request.kind === 'close') await worker.terminate()
    return value
  }
}
