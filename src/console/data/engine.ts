import { randomUUID } from 'node:crypto'
import { setImmediate as nextTurn, setTimeout as wait } from 'node:timers/promises'

import { sql } from 'kysely'

import { AdapterError } from '../../errors.ts'
import { addCounts, type Counted } from './counts.ts'
import {
  addBatches,
  createRecordIndex,
  type IndexOptions,
  openSearchHash,
  readKept,
} from './index-records.ts'
import { type ConsoleDatabase, openConsoleDatabase } from './open-database.ts'
import { checkBalances, hasUnchecked, readOverview } from './overview.ts'
import type { ConsoleData } from './port.ts'
import { findAll, readDetails, readPage, readWaiting } from './search.ts'
import { keepSteps, type NewStep } from './steps.ts'
import { sweepIndex } from './sweep.ts'

interface EngineOptions extends IndexOptions {
  readonly url: string
  /** Called at the first failure of the background work after a success. The work is retried. */
  readonly onFailure: (cause: unknown) => void
}

export interface ConsoleEngine extends Omit<ConsoleData, 'retry' | 'dismiss'> {
  /** Decrypts the stored request of a batch and the stored part of one record. The caller checks that the person may see both. */
  readKept(batch: number, position: number): ReturnType<typeof readKept>
  keepSteps(steps: readonly NewStep[], lost: number): Promise<void>
  keepFigures(counts: readonly Omit<Counted, 'atMs'>[], atMs: number): Promise<void>
  /** Returns the milliseconds that PostgreSQL has worked on the index, which the processor time of this thread does not include. */
  servedMs(): number
  /** Does the background work that is due. Resolves to true if more work may be due. */
  work(): Promise<boolean>
  start(): void
  close(): Promise<void>
}

const EVERY_MS = 1_000
const RETRY_MS = 10_000
/** The duration of the lease on the background work. Another instance takes the work over once the lease has expired. */
const HELD_MS = 15_000
const SWEEP_EVERY_MS = 5_000
const CHECK_EVERY_MS = 60_000

const GUID = /^\{?([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\}?$/i

/** Opens the engine of queries and background work. Rejects with the error of the database driver if there is no journal yet. */
export async function openConsoleEngine(options: EngineOptions): Promise<ConsoleEngine> {
  const { url, how, onFailure } = options
  const database = await openConsoleDatabase(url)
  const { db, dialect } = database
  const hash = await openSearchHash(database, how).catch(async (cause: unknown) => {
    await database.close()
    throw cause
  })
  let [sweptMs, checkedMs, servedMs] = [-Infinity, -Infinity, 0]
  const indexRecords = createRecordIndex(database, options, hash, (ms) => {
    servedMs += ms
  })
  const holder = randomUUID()
  const work = async (): Promise<boolean> => {
    if (!(await acquireLease(database, holder))) return false
    const now = performance.now()
    if (now - sweptMs >= SWEEP_EVERY_MS) {
      await sweepIndex(database)
      sweptMs = now
    }
    let more = await addBatches(database)
    await nextTurn()
    more = (await indexRecords()) || more
    if (!more && (now - checkedMs >= CHECK_EVERY_MS || (await hasUnchecked(database)))) {
      await checkBalances(database)
      checkedMs = now
    }
    return more
  }
  const stop = new AbortController()
  let running: Promise<void> | undefined
  const run = async (): Promise<void> => {
    let isFailing = false
    while (!stop.signal.aborted) {
      let afterMs = RETRY_MS
      try {
        afterMs = (await work()) ? 0 : EVERY_MS
        isFailing = false
      } catch (cause) {
        if (!isFailing) onFailure(cause)
        isFailing = true
      }
      await wait(afterMs, undefined, { signal: stop.signal }).catch(() => undefined)
    }
  }
  const ask = async <Result>(question: () => Promise<Result>): Promise<Result> => {
    try {
      return await question()
    } catch (cause) {
      if (cause instanceof AdapterError) throw cause
      throw new AdapterError(
        'ADP_JOURNAL_UNAVAILABLE',
        'The journal cannot be read now. No record was lost. Try again later.',
        {
          cause,
        },
      )
    }
  }
  return {
    overview: (range, scope) => ask(() => readOverview(database, range, scope)),
    // eslint-disable-next-line @typescript-eslint/require-await
    hash: async (kind, typed) => {
      const [, id] = GUID.exec(typed.trim()) ?? []
      return id && hash(kind, id.toLowerCase()).toString(16).padStart(13, '0')
    },
    search: (search, scope) => ask(() => findAll(database, search, scope)),
    batch: (batch, scope) => ask(() => readDetails(database, batch, scope)),
    records: (batch, page) => ask(() => readPage(database, batch, page)),
    waiting: (filter, scope) => ask(() => readWaiting(database, filter, scope)),
    readKept: (batch, position) => ask(() => readKept(database, how, batch, position)),
    keepSteps: (steps, lost) => ask(() => keepSteps(database, steps, lost)),
    keepFigures: (counts, atMs) =>
      ask(() => addCounts(db, dialect, counts.map((one) => ({ ...one, atMs })))), // prettier-ignore
    servedMs: () => servedMs,
    work,
    start: () => {
      running = run()
    },
    close: async () => {
      stop.abort()
      await running
      await database.close()
    },
  }
}

/** Acquires or renews the lease on the background work. Returns false if another instance holds it. */
async function acquireLease({ db, nowMs }: ConsoleDatabase, holder: string): Promise<boolean> {
  const { rows } =
    await sql`update console_index set holder = ${holder}, until_ms = ${nowMs()} + ${sql.lit(HELD_MS)}
    where holder = ${holder} or until_ms < ${nowMs()} returning id`.execute(db)
  return rows.length > 0
}
