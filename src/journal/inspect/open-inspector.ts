import { AdapterError } from '../../errors.ts'
import type { DueRecords } from '../journal.ts'
import { purge, type Purged, type Retention } from '../purge.ts'
import { findContradiction } from '../high-water/check-mark.ts'
import { checkVersion } from '../schema/migrate.ts'
import { createAvailability } from '../store/availability.ts'
import { backgroundClock } from '../../clock.ts'
import { damagedStore } from '../store/damage.ts'
import { openStore } from '../store/open-store.ts'
import { dismissDeadLetters, makeDue } from './change-records.ts'
import { type CheckedBalance, checkBalances } from './check-balances.ts'
import { type BatchFilter, type BatchSummary, listBatches, readSummary } from './list-batches.ts'
import { listDeadLetters, listRecords, type RecordSummary } from './list-records.ts'

/** One batch with the outcomes of its records. */
export interface BatchReport extends BatchSummary {
  readonly parts: readonly RecordSummary[]
}

/**
 * A journal as an operator sees it, also while it is served: counts, states, times and reasons. It needs no key, since it
 * reads nothing that a client sent. Errors: `ADP_JOURNAL_UNAVAILABLE`.
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
  close(): Promise<void>
}

/** How long one question may take. */
const TIMEOUT_MS = 10_000

/**
 * Opens a journal that is there, without a lease and without changing its tables. Errors: `ADP_CONFIGURATION` for an address
 * that is none or a journal of another version; `ADP_JOURNAL_UNAVAILABLE`.
 */
export async function openInspector(url: string, markFile?: string): Promise<JournalInspector> {
  const store = openStore(url, {
    timeoutMs: TIMEOUT_MS,
    replayForMs: 0,
    wallMs: Date.now,
    existing: true,
    markFile,
  })
  const availability = createAvailability(store, backgroundClock, () => undefined)
  const ask = <Result>(question: () => Promise<Result>): Promise<Result> => availability.ask(question)
  try {
    const damage =
      (await store.findDamage()) ?? (await findContradiction(store.db, store.dialect, store.mark))
    if (damage !== undefined) throw damagedStore(store.place, damage)
    await checkVersion(store.db)
  } catch (error) {
    await store.close()
    if (error instanceof AdapterError) throw error
    const storeError = store.toStoreError(error)
    if (storeError.kind === 'damaged') throw damagedStore(store.place, storeError.message, error)
    throw new AdapterError(
      'ADP_JOURNAL_UNAVAILABLE',
      `There is no journal at ${store.place}: ${storeError.message}.`,
      { cause: error },
    )
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
    close: () => store.close(),
  }
}
