import type { Balance, BatchSummary, RecordState, RecordSummary } from '../../journal/index.ts'

/**
 * What the console's pages ask of the journal and of all its instances. Every instance gives the same answers, since all that is
 * answered is in the shared store. Nothing of it holds a value of a learner or a mark: learners, events and marks are keyed hashes. Errors of each:
 * `ADP_JOURNAL_UNAVAILABLE`.
 */
export interface ConsoleData {
  /** The first page: traffic, balances, instances, calls. */
  overview(range: Range, scope: Scope): Promise<Overview>
  /**
   * Hashes what an operator typed: only the hash goes into an address, a log or the store. A guid is taken in any case and with braces.
   * Undefined if it is not a GUID. Error: `ADP_CONFIGURATION` for a learner or an event where the journal's key is missing.
   */
  hash(kind: HashedKind, typed: string): Promise<string | undefined>
  /** Batches and records that fit all members of a search, newest first. */
  search(search: Search, scope: Scope): Promise<SearchResult>
  /** One batch without its records; undefined: it is not kept, or is of a partner outside the scope. */
  batch(batch: number, scope: Scope): Promise<BatchDetails | undefined>
  /** A page of the records of a batch, in their order. */
  records(batch: number, page: RecordsPage): Promise<RecordRows>
  /** Dead letters, and records that the background will try again, oldest first, 100 at a time. */
  waiting(filter: WaitingFilter, scope: Scope): Promise<WaitingRows>
  /** Makes the waiting records of a batch due now; returns how many. A running instance takes them up within seconds. */
  retry(batch: number): Promise<number>
  /** Takes dead letters of a batch off the list, all of them without positions; returns how many. */
  dismiss(batch: number, positions?: readonly number[]): Promise<number>
}

/** Partners whose batches may be seen; `all`: every one. */
export type Scope = 'all' | readonly string[]

/** `live`: the last 10 minutes. Points are 10 s (live), 1 min (hour), 10 min (day), 1 h (week) long. */
export type Range = 'live' | 'hour' | 'day' | 'week'

/** Marks by state. */
export type StateCounts = Readonly<Record<RecordState, number>>

export interface Overview {
  /** When it was read, ms since the epoch by the clock of the store. */
  readonly atMs: number
  readonly traffic: Traffic
  readonly balances: readonly PartnerBalance[]
  readonly instances: readonly Instance[]
  /** Calls to V3 and times, of all instances, oldest first; a minute in which no instance wrote its figures is left out. */
  readonly figures: readonly Figures[]
  readonly index: IndexState
  readonly trouble: readonly Trouble[]
}

/** Something that goes wrong now, or records that wait. */
export interface Trouble {
  /** `denied`: credentials of clients; `ownDenied`: those of the configuration; both within the last minutes. */
  readonly kind: 'v3Fails' | 'denied' | 'ownDenied' | 'notApplied' | 'unknown' | 'parked' | 'deadLetters'
  /** Undefined: of all partners. */
  readonly partner: string | undefined
  /** Calls, writes or records. */
  readonly count: number
  /** Milliseconds since the epoch. */
  readonly sinceMs: number
}

/** Marks by the time of their receipt and by the state that they have now: for each point, too, received is the sum of the states. */
export interface Traffic {
  /** Start of the first point, ms since the epoch. */
  readonly fromMs: number
  readonly stepMs: number
  readonly points: number
  /** For each partner and state with a mark in the range: one count for each point, oldest first. */
  readonly series: readonly {
    readonly partner: string
    readonly state: RecordState
    readonly counts: readonly number[]
  }[]
}

/** The totals of a partner since the journal was created; `open`: in flight. */
export interface PartnerBalance extends Balance {
  /** False: totals and kept records contradict each other, so the journal is damaged. Undefined: not checked yet. */
  readonly holds: boolean | undefined
  /** When that was checked, ms since the epoch. */
  readonly checkedMs: number | undefined
  readonly deadLetters: number
}

/** An instance that has a lease, or was lost with one. */
export interface Instance {
  readonly instance: number
  readonly host: string
  readonly pid: number
  readonly leaseUntilMs: number
  /** `live`: its lease holds. `expired`: it was not renewed. `lost`: others have taken over from it. */
  readonly state: 'live' | 'expired' | 'lost'
  /** Batches with records in flight that it owns. */
  readonly openBatches: number
}

/** The figures of one minute, of all instances together; of a longer step, of all its minutes. */
export interface Figures {
  readonly atMs: number
  /** Calls to V3 by kind (`write`, `batch`, `read`, `pass_through`) and class of status (`2xx`, `429`, `5xx`, `none`, …). */
  readonly calls: readonly { readonly kind: string; readonly status: string; readonly count: number }[]
  /** Calls that the rate limit turned away. */
  readonly refusedCalls: number
  /** From a call to V3 to the head of its reply. */
  readonly callMs: Percentiles
  /** From a batch to its answer. */
  readonly batchMs: Percentiles
  /** The wait of calls for the rate limit. */
  readonly queueMs: Percentiles
}

/** Upper bounds of the bucket that each percentile falls into, ms; undefined without a value. The largest bucket is 90 s. */
export interface Percentiles {
  readonly count: number
  readonly p50: number | undefined
  readonly p95: number | undefined
  readonly p99: number | undefined
}

/** How far the background has come: what is newer, or could not be read, is not found by a search for what is inside a request. */
export interface IndexState {
  /** Batches that are not counted or searchable yet. */
  readonly waiting: number
  /** Batches whose records cannot be found by learner, event, Content-ID or the client's batch id, by reason. */
  readonly unreadable: readonly { readonly reason: UnreadableReason; readonly batches: number }[]
  /** Steps of timelines that were lost, since too many came at once. */
  readonly lostSteps: number
}

/** `onV2`: V2 served it, and its request is not kept. `gone`: its request was past its time. `key`: the key is missing. `damaged`: it cannot be read. */
export type UnreadableReason = 'onV2' | 'gone' | 'key' | 'damaged'

export type HashedKind = 'learner' | 'event' | 'mark'

/** What is searched; an omitted member does not restrict. Learner and event together find the records of that pair. */
export interface Search {
  /** The number of the batch in the journal. */
  readonly batch?: number | undefined
  /** The boundary that the client gave its batch, such as `batch_36522ad7…`, whole. */
  readonly boundary?: string | undefined
  readonly contentId?: string | undefined
  /** Hashes of `hash`. */
  readonly learner?: string | undefined
  readonly event?: string | undefined
  readonly mark?: string | undefined
  readonly partner?: string | undefined
  /** Of the records; of batches, that one of their records has it. */
  readonly state?: RecordState | undefined
  /** Received in this time, ms since the epoch; the second is not included. */
  readonly fromMs?: number | undefined
  readonly untilMs?: number | undefined
  /** `next` of the page before. */
  readonly after?: string | undefined
  /** Default 50. */
  readonly limit?: number | undefined
}

/** Records where something inside a record was searched for, else batches. */
export type SearchResult = { readonly next: string | undefined } & (
  | { readonly kind: 'batches'; readonly batches: readonly BatchRow[] }
  | { readonly kind: 'records'; readonly records: readonly RecordRow[] }
)

export interface BatchRow extends Pick<
  BatchSummary,
  'batch' | 'partner' | 'receivedMs' | 'records' | 'states'
> {
  /** Undefined: not read yet, or unreadable. */
  readonly boundary: string | undefined
  readonly servedBy: 'v2' | 'v3'
}

export interface BatchDetails extends BatchRow {
  /** The instance that may settle it. */
  readonly instance: number
  /** Its reply was written out whole. */
  readonly answered: boolean
  /** Its request is kept, so that it can be explained and sent again. */
  readonly hasRequest: boolean
  readonly deadLetters: number
  /** Why its records cannot be found by what is inside them; undefined: they can, or will be soon. */
  readonly unreadable: UnreadableReason | undefined
  /** Exceptional steps, oldest first, at most 500. */
  readonly timeline: readonly Step[]
}

export interface RecordRow extends RecordSummary {
  readonly contentId: string | undefined
  /** The instance that may settle it. */
  readonly instance: number
}

export interface RecordsPage {
  /** Default 0. */
  readonly from?: number | undefined
  /** Default 100. */
  readonly limit?: number | undefined
  readonly state?: RecordState | undefined
}

export interface RecordRows {
  readonly records: readonly RecordRow[]
  /** `from` of the next page; undefined: this is the last. */
  readonly next: number | undefined
}

/**
 * An exceptional step on the way of a batch: `replayed`: it came again and was answered from the journal. `joined`: it came again while
 * it was running. `retried`: records were opened again. `readBack`: their outcome was looked up in V3. `unknown`, `parked`: they were settled so.
 * `superseded`: a newer mark took their place. `takenOver`: from another instance. `recovered`: records that had been unknown or parked were
 * settled for good.
 */
export interface Step {
  readonly atMs: number
  readonly kind: StepKind
  /** The instance that took it. */
  readonly instance: number | undefined
  /** Positions of the records, as ranges; empty: the whole batch. */
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
  /** Dead letters, or records that are parked or unknown and due later. */
  readonly kind: 'deadLetters' | 'parked'
  readonly partner?: string | undefined
  readonly reason?: string | undefined
  readonly after?: string | undefined
}

export interface WaitingRows {
  readonly records: readonly RecordRow[]
  /** All that fit, at most 10,000, by reason. */
  readonly reasons: readonly { readonly reason: string; readonly records: number }[]
  readonly next: string | undefined
}
