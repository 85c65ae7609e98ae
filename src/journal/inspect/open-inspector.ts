import type { DueRecords } from '../journal.ts'
import { type Erased, eraseLearner, type LearnerSearch } from '../erase-learner.ts'
import { checkExisting, openExisting, toOpeningError } from '../journal-database.ts'
import { purge, type Purged, type Retention } from '../purge.ts'
import { createAvailability } from '../store/availability.ts'
import type { Unsealing } from '../store/seal.ts'
import { backgroundClock } from '../../clock.ts'
import { dismissDeadLetters, makeDue } from './change-records.ts'
import { type CheckedBalance, checkBalances } from './check-balances.ts'
import { type BatchFilter, type BatchSummary, listBatches, readSummary } from './list-batches.ts'
import { listDeadLetters, listRecords, type RecordSummary } from './list-records.ts'

/** One batch with the outcomes of its records. */
export interface BatchReport extends BatchSummary {
  readonly parts: readonly RecordSummary[]
}

/**
 * A journal as an operator sees it, also while it is served: counts, states, times and reasons. It needs no key, since all but
 * `erase` reads nothing that a client sent. Errors: `ADP_JOURNAL_UNAVAILABLE`.
 */
export interface JournalInspector {
  batches(filter: BatchFilter): Promise<readonly BatchSummary[]>
  /** Undefined: it is not kept. */
  batch(number: number): Promise<BatchReport | undefined>
  deadLetters(filter: {
    readonly partner?: string | undefined
    readonly limit: number
  }): Promise<readonly RecordSummary[]>
  balances(): Promise<readonly CheckedBalance[]>
  /** Makes waiting records due now; a running server picks them up within seconds. */
  makeDue(nowMs: number, batch?: number): Promise<readonly DueRecords[]>
  /** Takes dead letters of a batch off the list; without positions all of them. Gives how many there were. */
  dismiss(batch: number, positions?: readonly number[]): Promise<number>
  purge(retention: Retention, nowMs: number): Promise<Purged>
  /**
   * Erases the requests and answers of settled batches that name a learner, as `search` reads them. It alone needs the keys of the
   * journal. Error: `ADP_CONFIGURATION` without them.
   */
  erase(how: Unsealing, search: LearnerSearch): Promise<Erased>
  close(): Promise<void>
}

/**
 * Opens a journal that is there, without a lease and without changing its tables. Errors: `ADP_CONFIGURATION` for an address
 * that is none or a journal of another version; `ADP_JOURNAL_UNAVAILABLE`.
 */
export async function openInspector(url: string, markFile?: string): Promise<JournalInspector> {
  const store = openExisting(url, markFile)
  const availability = createAvailability(store, backgroundClock, () => undefined)
  const ask = <Result>(question: () => Promise<Result>): Promise<Result> => availability.ask(question)
  try {
    await checkExisting(store)
  } catch (error) {
    await store.close()
    throw toOpeningError(store, error)
  }
  return {
    batches: (filter) => ask(() => listBatches(store.db, filter)),
    batch: (number) =>
      ask(async () => {
        const summary = await readSummary(store.db, number)
        return summary === undefined ? undefined : { ...summary, parts: await listRecords(store.db, number) }
      }),
    deadLetters: (filter) => ask(() => listDeadLetters(store.db, filter)),
    balances: () => ask(() => checkBalances(store.db)),
    makeDue: (nowMs, batch) => ask(() => makeDue(store.db, nowMs, batch)),
    dismiss: (batch, positions) => ask(() => dismissDeadLetters(store.db, batch, positions)),
    purge: (retention, nowMs) => ask(() => purge(store, retention, nowMs)),
    erase: (how, search) => ask(() => eraseLearner(store, how, search)),
    close: () => store.close(),
  }
}
