import type { Balance, BatchSummary, RecordState, RecordSummary } from '../../journal/index.ts'

/**
 * The queries of the console's pages. Every instance gives the same answers, since they come from the shared store. The answers contain
 * keyed hashes instead of learners, events and marks. Each query rejects with `ADP_JOURNAL_UNAVAILABLE` if the journal cannot be read.
 */
export interface ConsoleData {
  overview(range: Range, scope: Scope): Promise<Overview>
  /**
   * Hashes an id that an operator typed, so that only the hash appears in addresses, logs and the store. Accepts a guid in upper or lower
   * case, also in braces; returns `undefined` for any other text. Throws `ADP_CONFIGURATION` for a learner or an event if the journal's key
   * is missing.
   */
  hash(kind: HashedKind, typed: string): Promise<string | undefined>
  /** Finds the batches or records that match all members of a search, newest first. */
  search(search: Search, scope: Scope): Promise<SearchResult>
  /** Returns `undefined` if the batch is not stored or belongs to a partner outside the scope. */
  batch(batch: number, scope: Scope): Promise<BatchDetails | undefined>
  /** Returns a page of the records of a batch, in the order of the batch. */
  records(batch: number, page: RecordsPage): Promise<RecordRows>
  /** Returns up to 100 dead letters, or records that are retried in the background, oldest first. */
  waiting(filter: WaitingFilter, scope: Scope): Promise<WaitingRows>
  /** Makes the waiting records of a batch due now and returns their number. A running instance retries them within seconds. */
  retry(batch: number): Promise<number>
  /** Removes dead letters of a batch from the list, all of them if no positions are given, and returns their number. */
  dismiss(batch: number, positions?: readonly number[]): Promise<number>
}

/** The partners whose batches may be seen, or `all`. */
export type Scope = 'all' | readonly string[]

/** A time range up to now: 10 minutes (`live`), an hour, a day or a week. Its intervals are 10 s, 1 min, 10 min or 1 h long. */
export type Range = 'live' | 'hour' | 'day' | 'week'

export type StateCounts = Readonly<Record<RecordState, number>>

export interface Overview {
  /** The time of the query by the clock of the store. */
  readonly atMs: number
  readonly traffic: Traffic
  readonly balances: readonly PartnerBalance[]
  readonly instances: readonly Instance[]
  /** Calls to V3 and durations of all instances, oldest first. Minutes without stored figures are left out. */
  readonly figures: readonly Figures[]
  readonly index: IndexState
  readonly trouble: readonly Trouble[]
}

export interface Trouble {
  /** `denied`: V3 denied credentials of clients in the last minutes. `ownDenied`: V3 denied those of the configuration. */
  readonly kind: 'v3Fails' | 'denied' | 'ownDenied' | 'notApplied' | 'unknown' | 'parked' | 'deadLetters'
  /** `undefined` if the trouble concerns all partners. */
  readonly partner: string | undefined
  /** The number of calls, writes or records. */
  readonly count: number
  readonly sinceMs: number
}

/** Marks by time of receipt and present state. In each interval, the number of received marks is the sum of the states. */
export interface Traffic {
  readonly fromMs: number
  readonly stepMs: number
  readonly points: number
  /** One series for each partner and state with a mark in the range: a count for each interval, oldest first. */
  readonly series: readonly {
    readonly partner: string
    readonly state: RecordState
    readonly counts: readonly number[]
  }[]
}

/** The totals of a partner since the journal was created. */
export interface PartnerBalance extends Balance {
  /** False if the totals contradict the stored records, which means that the journal is damaged; `undefined` before the first check. */
  readonly holds: boolean | undefined
  readonly checkedMs: number | undefined
  readonly deadLetters: number
}

/** An instance that has a lease, or lost it without a clean end. */
export interface Instance {
  readonly instance: number
  readonly host: string
  readonly pid: number
  readonly leaseUntilMs: number
  /** `live`: its lease is valid. `expired`: it has not renewed its lease. `lost`: other instances have taken over its batches. */
  readonly state: 'live' | 'expired' | 'lost'
  readonly openBatches: number
}

/** The figures of all instances together in one interval. */
export interface Figures {
  readonly atMs: number
  /** Calls to V3 by kind (`write`, `batch`, `read`, `pass_through`) and class of status (`2xx`, `429`, `5xx`, `none`, …). */
  readonly calls: readonly { readonly kind: string; readonly status: string; readonly count: number }[]
  readonly refusedCalls: number
  /** The time from a call to V3 to the head of its response. */
  readonly callMs: Percentiles
  /** The time from a batch to its reply. */
  readonly batchMs: Percentiles
  /** The time that calls waited for the rate limit. */
  readonly queueMs: Percentiles
}

/** Percentiles in milliseconds, each rounded up to the bound of its bucket (at most 90 s), or `undefined` without a value. */
export interface Percentiles {
  readonly count: number
  readonly p50: number | undefined
  readonly p95: number | undefined
  readonly p99: number | undefined
}

/** The progress of the background work. A search by the content of requests does not find newer batches or unreadable ones. */
export interface IndexState {
  /** The number of batches that are not counted or not searchable yet. */
  readonly waiting: number
  /** The number of batches whose records cannot be found by learner, event, Content-ID or batch id of the client, by reason. */
  readonly unreadable: readonly { readonly reason: UnreadableReason; readonly batches: number }[]
  /** Steps of timelines that were dropped because the queue was full. */
  readonly lostSteps: number
}

/** `onV2`: V2 served it, so it is not stored. `gone`: its retention is over. `key`: the key is missing. `damaged`: it cannot be decoded. */
export type UnreadableReason = 'onV2' | 'gone' | 'key' | 'damaged'

export type HashedKind = 'learner' | 'event' | 'mark'

/** A search; an omitted member does not restrict it. A learner and an event together find the records that have both. */
export interface Search {
  readonly batch?: number | undefined
  /** The whole boundary that the client gave the batch, such as `batch_36522ad7…`. */
  readonly boundary?: string | undefined
  readonly contentId?: string | undefined
  /** A result of `hash`, like `event` and `mark`. */
  readonly learner?: string | undefined
  readonly event?: string | undefined
  readonly mark?: string | undefined
  readonly partner?: string | undefined
  /** A search for batches finds those with at least one record in this state. */
  readonly state?: RecordState | undefined
  /** The time of receipt; `untilMs` itself is excluded. */
  readonly fromMs?: number | undefined
  readonly untilMs?: number | undefined
  /** The `next` of the previous page. */
  readonly after?: string | undefined
  /** Default: 50. */
  readonly limit?: number | undefined
}

/** Records if the search names the content of a record, else batches. */
export type SearchResult = { readonly next: string | undefined } & (
  | { readonly kind: 'batches'; readonly batches: readonly BatchRow[] }
  | { readonly kind: 'records'; readonly records: readonly RecordRow[] }
)

export interface BatchRow extends Pick<
  BatchSummary,
  'batch' | 'partner' | 'receivedMs' | 'records' | 'states'
> {
  /** The boundary of the client, or `undefined` if the request is not read yet or cannot be read. */
  readonly boundary: string | undefined
  readonly servedBy: 'v2' | 'v3'
}

export interface BatchDetails extends BatchRow {
  /** The instance that may settle the batch. */
  readonly instance: number
  readonly answered: boolean
  /** True if the request is stored, so that it can be explained and sent again. */
  readonly hasRequest: boolean
  readonly deadLetters: number
  /** Why the records cannot be found by their content, or `undefined` if they can be found, now or soon. */
  readonly unreadable: UnreadableReason | undefined
  /** At most 500 exceptional steps, oldest first. */
  readonly timeline: readonly Step[]
}

export interface RecordRow extends RecordSummary {
  readonly contentId: string | undefined
  /** The instance that may settle the record. */
  readonly instance: number
}

export interface RecordsPage {
  /** Default: 0. */
  readonly from?: number | undefined
  /** Default: 100. */
  readonly limit?: number | undefined
  readonly state?: RecordState | undefined
}

export interface RecordRows {
  readonly records: readonly RecordRow[]
  /** The `from` of the next page, or `undefined` for the last page. */
  readonly next: number | undefined
}

/**
 * An exceptional step of a batch. `replayed`: the client resent the batch and got the reply from the journal. `joined`: the client resent
 * the batch while it was in progress. `retried`: records were opened again. `readBack`: the outcome of records was looked up in V3.
 * `unknown` and `parked`: records were settled in this state. `superseded`: a newer mark replaced records. `takenOver`: the instance took
 * records over from another one. `recovered`: unknown or parked records reached their final state.
 */
export interface Step {
  readonly atMs: number
  readonly kind: StepKind
  readonly instance: number | undefined
  /** Empty for the whole batch. */
  readonly positions: readonly (readonly [from: number, to: number])[]
  readonly reason: string | undefined
}

export type StepKind =
  | 'replayed'
  | 'joined'
  | 'retried'
  | 'readBack'
  | 'unknown'
  | 'parked'
  | 'superseded'
  | 'takenOver'
  | 'recovered'

export interface WaitingFilter {
  /** Dead letters, or parked and unknown records that are due later. */
  readonly kind: 'deadLetters' | 'parked'
  readonly partner?: string | undefined
  readonly reason?: string | undefined
  readonly after?: string | undefined
}

export interface WaitingRows {
  readonly records: readonly RecordRow[]
  /** The number of matching records by reason, of at most 10,000 records. */
  readonly reasons: readonly { readonly reason: string; readonly records: number }[]
  readonly next: string | undefined
}
