import type { RecordState, SettledState } from './lifecycle.ts'

export type { RecordState, SettledState } from './lifecycle.ts'

/** Identifies a record by its batch and its position in the batch. Older batches have smaller numbers, whichever instance began them. */
export interface RecordRef {
  readonly batch: number
  readonly position: number
}

/** A batch to be stored before it is sent. The journal does not interpret the bytes of the request. */
export interface NewBatch {
  readonly partner: string
  /**
   * `v2` if the batch is forwarded to V2 unchanged, or `undefined` if V3 serves the batch. When V3 serves a later copy of a V2 batch, the
   * journal recognises the copy. When V2 serves the later copy, the `resendOf` of the copy decides whether the journal recognises it.
   */
  readonly side?: 'v2' | undefined
  /**
   * Limits which stored reply of V2 answers a batch that V2 serves. The reply to an earlier copy answers this batch only if the number of
   * that copy is above `resendOf`. With 0, the reply to any earlier copy may answer. With `undefined`, no stored reply answers, so V2
   * receives the batch as often as the client sends it.
   */
  readonly resendOf?: number | undefined
  /**
   * The number of a V2 batch with the same records, which this batch replaces. The journal then no longer recognises the replaced batch or
   * its older copies.
   */
  readonly replacesBatch?: number | undefined
  /** The client that owns the batch, in a form that the caller chooses. Batches of different owners are never copies of each other. */
  readonly owner: string
  /**
   * SHA-256 of the owner and the ids in the envelope. `undefined` if the batch has no ids, so that the journal cannot recognise a resend.
   */
  readonly ids: Uint8Array | undefined
  /** SHA-256 of everything that affects the posted records or the reply. */
  readonly content: Uint8Array
  /** Time of receipt in milliseconds since the epoch. */
  readonly receivedMs: number
  /** The stored request, from which the batch can be finished without its client. The journal encrypts the request if the journal has a key. */
  readonly payload: Uint8Array
  /**
   * The client's credentials. Stored only in a journal with a key, always encrypted, and deleted when no record of the batch is active.
   */
  readonly credentials: string | undefined
  /**
   * True if neither V3 nor V2 has accepted the credentials yet. The batch then retires other batches (see `answered`) only once one of its
   * records is confirmed. Default false.
   */
  readonly newcomer?: boolean
  readonly records: readonly NewRecord[]
}

/** A record of a new batch. The index of the record in the batch is its position. */
export interface NewRecord {
  /** Records with the same key are sent one after another. The journal stores the key as a salted hash. */
  readonly key: string
  /** The reply part and the reason for a record that is refused without being sent. */
  readonly refused?: Verdict
}

export interface Verdict {
  /** The part of the reply, or `undefined` if the client received none. Encrypted at rest if the journal has a key. */
  readonly answer: string | undefined
  /** A code from `errors.ts`, a code from the service, or the name of the outcome. Never contains a value of a record. */
  readonly reason?: string | undefined
}

export interface ConfirmedMark {
  readonly externalId: string
  /** The `RecordedOn` of the mark in milliseconds since the epoch, or NaN if the mark has none. */
  readonly recordedMs: number
}

export interface Settled extends Verdict {
  readonly position: number
  readonly state: SettledState
  /** `undefined` for a final outcome, `resend` to wait for the client's resend, or the time of the next attempt in milliseconds since the epoch. */
  readonly retry?: 'resend' | number | undefined
  /**
   * True for an `unknown` record that is never posted again, because a newer record of the same key was confirmed or may have been applied.
   */
  readonly superseded?: boolean | undefined
  /** The mark that the service returned for a confirmed record. The journal stores the id of the mark as a salted hash. */
  readonly mark?: ConfirmedMark | undefined
  /** True if the client does not know the outcome. The record is listed with its reason until an operator dismisses it. */
  readonly deadLetter?: boolean | undefined
}

export interface KnownBatch {
  readonly kind: 'known'
  readonly batch: number
  /** True while a record of the batch is open. */
  readonly running: boolean
  readonly side?: 'v2' | undefined
  /** Numbers of earlier copies of the batch that were begun for V2, newest first, including copies that were never sent. Default: none. */
  readonly earlier?: readonly number[] | undefined
  /** True if `earlier` may lack the oldest copies, because the journal examines only a limited number of batches with the same ids. */
  readonly isCut?: boolean | undefined
  /**
   * Present if newer records with the same keys prevent the new batch from replacing the known batch. Lists the newer records that are open
   * or unknown. Empty if newer records are already confirmed and have superseded records of the known batch.
   */
  readonly newer?: readonly RecordRef[]
}

export type BeginResult =
  | {
      readonly kind: 'new'
      readonly batch: number
      /** The lease under which the batch was begun. This instance owns the batch as long as it holds that lease. */
      readonly lease: number
      /**
       * Maps a position to the nearest older open record of the same key in another batch, if there is one. Older records may end in any
       * order, so the caller sends a record only after its predecessor has ended and `olderOpen` finds no further predecessor.
       */
      readonly after: Predecessors
      /** The effective time of receipt in milliseconds since the epoch: never earlier than the time of the previous batch. */
      readonly receivedMs: number
      /** True if an earlier batch had the same ids but different bytes. */
      readonly idsReused: boolean
    }
  | KnownBatch

export interface StoredBatch {
  readonly batch: number
  readonly partner: string
  readonly owner: string
  readonly side?: 'v2' | undefined
  readonly receivedMs: number
  /** The stored request, or `undefined` once its retention period is over. */
  readonly payload: Uint8Array | undefined
  readonly credentials: string | undefined
  readonly records: readonly StoredRecord[]
}

/** A record as the journal stores it. In a reopened record, `answer`, `reason` and `retry` belong to the previous outcome. */
export interface StoredRecord {
  readonly position: number
  readonly state: RecordState
  readonly answer: string | undefined
  readonly reason: string | undefined
  readonly retry: 'resend' | number | undefined
  /** True if the record is never sent again, because a newer record of the same key was confirmed or may have been applied. */
  readonly superseded: boolean
  /** How often the record was opened: 1 if the record was never reopened. */
  readonly attempts: number
}

/** A record and an older record of the same key. V3 serves the older record, which is open, or is unknown and will be read back. */
export interface OlderUnsettled {
  readonly own: RecordRef
  readonly older: RecordRef
  readonly isOpen: boolean
}

export interface KnownMarks {
  /**
   * Returns the `RecordedOn` times, in milliseconds since the epoch, of older records that were confirmed with this mark. NaN if the mark
   * has no such time.
   */
  readonly confirmedAt: (externalId: string) => readonly number[]
  /** Older records with an unknown outcome that are newer than the last confirmed record. One of these records may be the current mark. */
  readonly lost: readonly RecordRef[]
  /**
   * Unknown records that are older than the last confirmed record. Their marks are current only if the service keeps several marks for one
   * key.
   */
  readonly lostBefore: readonly RecordRef[]
  /** `confirmed` if a newer record was confirmed. `open` if newer records exist that may be applied, because they are open, parked or unknown. */
  readonly newer: 'none' | 'open' | 'confirmed'
}

export interface DueRecords {
  readonly batch: number
  readonly positions: readonly number[]
}

/** Maps a position to the nearest older open record of the same key, if there is one. */
export type Predecessors = ReadonlyMap<number, readonly RecordRef[]>

export interface ReopenResult {
  readonly lease: number
  readonly after: Predecessors
  /** The earlier reasons of the reopened records that were unknown, by position. Default: none. */
  readonly unknown?: ReadonlyMap<number, string>
}

/** An orphaned batch. `after` maps each of its open records to the nearest older open record of the same key in another batch. */
export interface TakenOver {
  readonly batch: number
  readonly lease: number
  readonly after: Predecessors
}

/** The number of records of a partner, in total and by state, since the journal was created. */
export type Balance = { readonly partner: string; readonly received: number } & Readonly<
  Record<RecordState, number>
>

/**
 * The durable store of writes. Every record is stored before it is sent, and its outcome is stored before the client gets a reply. A record
 * that cannot be stored must not be sent: the call fails with `ADP_JOURNAL_UNAVAILABLE` (503), or with `ADP_OUTCOME_UNKNOWN` (504) if the
 * record may have been stored.
 *
 * Several instances may share one journal. The order of `begin` is the order of writes for all instances. An instance owns the batches that
 * it began or took over, as long as it renews its lease.
 */
export interface Journal {
  /** False for a journal without a store, which ignores payloads, credentials, ids and content. */
  readonly durable: boolean
  /** The secret that signs texts such as next links. All instances of one journal share it, and it survives restarts. */
  readonly linkSecret: Uint8Array
  /** The time (ms since the epoch) until which every record is read back before it is posted, because the journal may have lost sent records. */
  readonly readBackUntilMs: number
  /**
   * Stores a batch durably before any record of the batch is sent. Throws `ADP_JOURNAL_UNAVAILABLE` if the batch was not stored and never
   * will be. Throws `ADP_OUTCOME_UNKNOWN` if the batch may have been stored; another instance may then send the batch. Throws
   * `ADP_OVERLOADED` if the stored requests of the owner, or of all owners whose credentials were never accepted, reach their limit.
   */
  begin(batch: NewBatch): Promise<BeginResult>
  /**
   * Records that the reply to a batch was written out completely. If a batch with the same owner and ids but other bytes arrives later, the
   * journal retires the answered batch: a further copy of the answered batch is then a new batch. If the later batch is from a newcomer,
   * the answered batch is retired only once the newcomer's credentials are accepted.
   *
   * The fact is stored with the next `begin` or shortly after this call. If the process ends earlier, the batch counts as unanswered, and
   * the journal still recognises it.
   */
  answered(batch: number): void
  /**
   * Stores outcomes durably and retries while the journal is unavailable. Throws `ADP_JOURNAL_UNAVAILABLE` after the last attempt. Throws
   * `ADP_JOURNAL_LOST` if another instance has taken over the batch, or if this instance holds the batch again but under another lease than
   * `lease`. The caller must then not report the outcome, because the batch is finished under the newer lease.
   */
  settle(batch: number, outcomes: readonly Settled[], lease?: number): Promise<void>
  /** Ends a batch with rejected credentials: counts its `open` open records as refused, and deletes the batch. Throws the errors of `settle`. */
  forget(batch: number, open: number, lease: number): Promise<void>
  /**
   * Reopens records of a batch, and makes this instance the owner of the batch. Skips records that are final, are already open, or have a
   * newer record of the same key that is open or may have been applied. `credentials` replace the stored credentials. The caller must send
   * the reopened records of one key in order. The predecessors of a reopened record may include an open record of its own batch.
   */
  reopen(
    batch: number,
    positions: readonly number[],
    credentials: string | undefined,
    /** With `beforeRelay`, open records that V2 serves do not prevent reopening, because these V2 records wait for the records to reopen. */
    how?: 'beforeRelay',
  ): Promise<ReopenResult>
  load(batch: number): Promise<StoredBatch | undefined>
  /**
   * Returns what the journal knows about the other records with the same key as `record`. Batch number and position decide which records
   * are older or newer. With `sinceMs` (milliseconds since the epoch), records that were received at or after that time also count as
   * newer, except for records without a confirmation in earlier copies of the same batch.
   */
  knownMarks(record: RecordRef, sinceMs?: number): Promise<KnownMarks>
  /** Returns, for each record, the nearest older open record of its key in any batch, or `undefined` if there is none. */
  olderOpen(records: readonly RecordRef[]): Promise<readonly (RecordRef | undefined)[]>
  /** Returns the older records of the same keys that V3 serves and whose outcome is not certain, in one consistent read. */
  olderUnsettled(records: readonly RecordRef[]): Promise<readonly OlderUnsettled[]>
  /** Returns the `records` that are still open. Newer records of the same keys wait for these records. */
  stillOpen(records: readonly RecordRef[]): Promise<readonly RecordRef[]>
  /** Returns the open records of these batches that block an open record of the same key in a newer batch. */
  blocking(batches: readonly number[]): Promise<readonly RecordRef[]>
  /** Takes over the batches with open records whose instance is dead, oldest first. The caller loads and finishes each batch. */
  takeOver(): Promise<readonly TakenOver[]>
  /**
   * Finds batches of this instance that have open records although this process does not work on them, oldest first. `isAttended` returns
   * true for a batch that this process works on. A batch is returned by the second call at the earliest, and only once every journal call
   * that may have opened its records has ended.
   */
  findAbandoned(isAttended: (batch: number) => boolean): Promise<readonly TakenOver[]>
  /** Asks the instance that owns a batch to hand the batch over to this instance, which has the client's credentials and can finish the batch. */
  askFor(batch: number): Promise<void>
  /** Hands over the `batches` that other live instances have asked for. Returns the batches that were handed over. */
  handOver(batches: readonly number[]): Promise<readonly number[]>
  /**
   * Returns due records, the longest overdue first, which the caller opens with `reopen`. Includes records due so far ahead that a clock
   * must have been set back.
   */
  due(nowMs: number, limit: number): Promise<readonly DueRecords[]>
  balances(): Promise<readonly Balance[]>
  /** Returns the number of open or due records that V3 serves, by partner. Partners without such a record are absent. */
  unsettled(): Promise<ReadonlyMap<string, number>>
  /** Returns the number of dead letters by partner. Partners without dead letters are absent. */
  deadLetters(): Promise<ReadonlyMap<string, number>>
  /** Returns the note that all instances share under a name, or `undefined` if no note has the name. A note never contains a value of a mark. */
  readNote(name: string): Promise<string | undefined>
  writeNote(name: string, text: string): Promise<void>
  /**
   * Returns the number of this instance's lease, or `undefined` if other instances may have declared this instance dead. Without a lease
   * the instance must not send anything. Batches begun or taken over under a lost lease belong to other instances, even after a new lease
   * begins. Compares the lease with the monotonic clock and the wall clock.
   */
  lease(): number | undefined
  /** Renews the lease and returns its number, or `undefined` on timeout. The number is new if this instance was declared dead. Never rejects. */
  renewLease(): Promise<number | undefined>
  /** Returns false from a failure of the store until the store counts as recovered. */
  isAvailable(): boolean
  /** Returns true from the discovery of damage until the store counts as recovered. */
  isDamaged(): boolean
  /** Ends the lease and closes the store. Other instances, or the next start, finish the open records. */
  close(): Promise<void>
}
