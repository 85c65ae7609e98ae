import type { Balance, BatchSummary, RecordState, RecordSummary } from '../../journal/index.ts'

/**
 * The queries of the pages, and the two actions that change the journal: `retry` and `dismiss`. Every instance gives the same answers, since
 * the answers come from the shared store. The answers contain keyed hashes in place of the ids of learners, events and marks. Each member
 * rejects with `ADP_JOURNAL_UNAVAILABLE` if the journal cannot be read.
 */
export interface ConsoleData {
  overview(range: Range, scope: Scope): Promise<Overview>
  /**
   * Hashes an id that an operator typed, so that only the hash appears in addresses, logs and the store. Accepts a GUID in upper or lower
   * case, with or without braces. Returns `undefined` for any other text. Throws `ADP_CONFIGURATION` for a learner or an event if the key
   * of the journal is missing.
   */
  hash(kind: HashedKind, typed: string): Promise<string | undefined>
  /** Finds the batches or records that match all members of a search, newest first. */
  search(search: Search, scope: Scope): Promise<SearchResult>
  /** Returns the details of a batch, or `undefined` if the batch is not stored or belongs to a partner outside the scope. */
  batch(batch: number, scope: Scope): Promise<BatchDetails | undefined>
  /** Returns a page of the records of a batch, in the order of the batch. */
  records(batch: number, page: RecordsPage): Promise<RecordRows>
  /** Returns up to 100 records of the kind in `filter`, oldest first. */
  waiting(filter: WaitingFilter, scope: Scope): Promise<WaitingRows>
  /**
   * Makes waiting records of a batch due now and returns their number. A running instance retries these records within seconds. Without
   * positions, makes all waiting records of the batch due.
   */
  retry(batch: number, positions?: readonly number[]): Promise<number>
  /** Removes dead letters of a batch from the list and returns their number. Without positions, removes all its dead letters. */
  dismiss(batch: number, positions?: readonly number[]): Promise<number>
}

/** The partners whose batches may be seen, or `all`. */
export type Scope = 'all' | readonly string[]

/** A time range up to now: 10 minutes (`live`), an hour, a day or a week. Its intervals are 10 s, 1 min, 10 min or 1 h long. */
export type Range = 'live' | 'hour' | 'day' | 'week'

export type StateCounts = Readonly<Record<RecordState, number>>

export interface Overview {
  readonly atMs: number
  readonly traffic: Traffic
  readonly balances: readonly PartnerBalance[]
  readonly instances: readonly Instance[]
  readonly index: IndexState
  readonly trouble: readonly Trouble[]
  /** The latest time at which an instance stored its calls and denials, or `undefined` if that was more than 10 minutes ago. */
  readonly reportedMs: number | undefined
}

export interface Trouble {
  /**
   * `denied`: V3 denied credentials of clients. `ownDenied`: V3 or its token endpoint denied the credentials in the configuration.
   * `noToken`: the token endpoint could not be reached, or its response had no token.
   */
  readonly kind:
    | 'v3Fails'
    | 'v3Throttles'
    | 'v2Fails'
    | 'denied'
    | 'ownDenied'
    | 'noToken'
    | 'notApplied'
    | 'unknown'
    | 'parked'
    | 'deadLetters'
  /** The partner, or `undefined` if the trouble concerns all partners. */
  readonly partner: string | undefined
  readonly count: number
  readonly sinceMs: number
}

/** Counts in intervals of equal length. Each series has a count for each interval, oldest first. */
export interface Traffic {
  readonly fromMs: number
  readonly stepMs: number
  readonly points: number
  /**
   * Marks of the stored batches by time of receipt and current state, a series for each state with a mark in the range.
   */
  readonly marks: readonly Series<RecordState>[]
  /** Calls to V3 by the class of their status (`2xx`, `429`, `5xx`, …), or `none` if there was no response. */
  readonly calls: readonly Series<string>[]
  /** The times in which most calls to V3 failed, oldest first. */
  readonly outages: readonly { readonly fromMs: number; readonly untilMs: number }[]
}

export interface Series<Name> {
  readonly name: Name
  readonly counts: readonly number[]
}

/** The totals of a partner since the journal was created. */
export interface PartnerBalance extends Balance {
  /** False if the totals contradict the stored records, which means that the journal is damaged; `undefined` before the first check. */
  readonly holds: boolean | undefined
  readonly checkedMs: number | undefined
  readonly deadLetters: number
}

/** An instance that has a lease, or that lost its lease without a clean shutdown. */
export interface Instance {
  readonly instance: number
  readonly host: string
  readonly pid: number
  readonly leaseUntilMs: number
  /** `live`: its lease is valid. `expired`: it has not renewed its lease in time. `lost`: other instances have taken over its batches. */
  readonly state: 'live' | 'expired' | 'lost'
  readonly openBatches: number
}

/** The progress of the background work. A search by content does not find batches that are not indexed yet or cannot be read. */
export interface IndexState {
  /** The number of batches that are not counted or not searchable yet. */
  readonly waiting: number
  /** The number of batches by the reason why their records cannot be found by learner, event, Content-ID or batch id of the client. */
  readonly unreadable: readonly { readonly reason: UnreadableReason; readonly batches: number }[]
  readonly lostSteps: number
}

/**
 * The reason why a request cannot be read. `onV2`: V2 served the batch, so its request is not stored. `gone`: the retention period of the
 * request is over. `key`: the key of the request is missing. `damaged`: the request cannot be decoded.
 */
export type UnreadableReason = 'onV2' | 'gone' | 'key' | 'damaged'

export type HashedKind = 'learner' | 'event' | 'mark'

/** The conditions of a search. A missing member restricts nothing. A learner and an event together find records that have both. */
export interface Search {
  readonly batch?: number | undefined
  /** The complete boundary of the batch as the client wrote it, such as `batch_36522ad7…`. */
  readonly boundary?: string | undefined
  readonly contentId?: string | undefined
  /** A hash as returned by `hash`. `event` and `mark` are hashes too. */
  readonly learner?: string | undefined
  readonly event?: string | undefined
  readonly mark?: string | undefined
  readonly partner?: string | undefined
  /** The state of a record. A search for batches finds batches with at least one record in this state. */
  readonly state?: RecordState | undefined
  /** The earliest time of receipt. `untilMs` is the end of the range and is excluded. */
  readonly fromMs?: number | undefined
  readonly untilMs?: number | undefined
  /** The `next` of the previous page, or `undefined` for the first page. */
  readonly after?: string | undefined
  /** Default: 50. */
  readonly limit?: number | undefined
}

/** The result of a search: records if the search names the content of a record, and batches otherwise. */
export type SearchResult = { readonly next: string | undefined } & (
  | { readonly kind: 'batches'; readonly batches: readonly BatchRow[] }
  | { readonly kind: 'records'; readonly records: readonly RecordRow[] }
)

export interface BatchRow extends Pick<
  BatchSummary,
  'batch' | 'partner' | 'receivedMs' | 'records' | 'states'
> {
  /** The boundary in the request of the client, or `undefined` if the request is not indexed yet or cannot be read. */
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
  /** The reason why the records cannot be found by their content, or `undefined` if they can be found, now or soon. */
  readonly unreadable: UnreadableReason | undefined
  /** At most 500 exceptional steps, oldest first. */
  readonly timeline: readonly Step[]
}

export interface RecordRow extends RecordSummary {
  readonly contentId: string | undefined
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
 * records over from another instance. `recovered`: unknown or parked records reached their final state.
 * Steps that differ only in their time are one step, with the first and the last time.
 */
export interface Step {
  readonly atMs: number
  readonly lastMs: number
  readonly times: number
  readonly kind: StepKind
  readonly instance: number | undefined
  /** The ranges of the positions of records. Empty if the step concerns the whole batch. */
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
  /**
   * `deadLetters` selects dead letters. `notApplied` selects records that their clients must send again. `parked` selects records that the
   * adapter retries or reads back in the background.
   */
  readonly kind: 'deadLetters' | 'notApplied' | 'parked'
  readonly partner?: string | undefined
  readonly reason?: string | undefined
  readonly after?: string | undefined
}

export interface WaitingRows {
  readonly records: readonly RecordRow[]
  /** The number of matching records by reason, with the state of one of them. At most 10,000 records are counted. */
  readonly reasons: readonly {
    readonly reason: string
    readonly state: RecordState
    readonly records: number
  }[]
  readonly next: string | undefined
}
