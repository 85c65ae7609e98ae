import type { RecordState, SettledState } from './lifecycle.ts'

export type { RecordState, SettledState } from './lifecycle.ts'

/** Identifies a record by its batch and its position in the batch. Older batches have smaller numbers, across all instances. */
export interface RecordRef {
  readonly batch: number
  readonly position: number
}

/** A batch that is about to be sent. The journal does not interpret its bytes. */
export interface NewBatch {
  readonly partner: string
  /**
   * `v2` if the batch is forwarded to V2 unchanged, or `undefined` if V3 serves the batch. A later copy of a batch for V2 is recognised
   * if V3 serves the copy. If V2 serves the copy, `resendOf` decides.
   */
  readonly side?: 'v2' | undefined
  /**
   * For a batch that V2 serves: the number up to which earlier copies sent to V2 do not answer this batch. With 0 every earlier copy may
   * answer. With `undefined` no earlier copy answers, so V2 receives the batch as often as the client sends it.
   */
  readonly resendOf?: number | undefined
  /** The batch, served by V2, that this batch replaces position by position. Neither it nor older copies are recognised afterwards. */
  readonly replacesBatch?: number | undefined
  /** The owner of the batch, as named by the caller. Batches of different owners are never the same batch. */
  readonly owner: string
  /** SHA-256 of the owner and the ids in the envelope, or `undefined` without ids. The journal then never recognises a resend. */
  readonly ids: Uint8Array | undefined
  /** SHA-256 of everything that determines what is posted and what is answered. */
  readonly content: Uint8Array
  /** Time of receipt in milliseconds since the epoch. */
  readonly receivedMs: number
  /** The stored request, from which the batch can be finished without its client. Encrypted at rest if the journal has a key. */
  readonly payload: Uint8Array
  /** The client's credentials. Stored only in a journal with a key, always encrypted, and deleted when no record is open. */
  readonly credentials: string | undefined
  /** True if neither V3 nor V2 has accepted the credentials. Such a batch retires no other until a record is confirmed. Default false. */
  readonly newcomer?: boolean
  readonly records: readonly NewRecord[]
}

/** Its position is its index. */
export interface NewRecord {
  /** Records with the same key are sent one after another. Stored as a salted hash. */
  readonly key: string
  /** The answer to a record that is refused without being sent. */
  readonly refused?: Verdict
}

export interface Verdict {
  /** The part of the reply, or `undefined` if the client received none. Encrypted at rest if the journal has a key. */
  readonly answer: string | undefined
  /** A code from `errors.ts`, from the service, or of the outcome. Never contains a value of a record. */
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
  /** `undefined` for a final outcome, `resend` to wait for the client's resend, or the due time in milliseconds since the epoch. */
  readonly retry?: 'resend' | number | undefined
  /** True for an `unknown` record that is never posted again. Without this, a newer record of its key would have to wait for it. */
  readonly superseded?: boolean | undefined
  /** The mark that the service returned for a confirmed record. Its id is stored as a salted hash. */
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
  /** Numbers of earlier copies of the batch that were begun for V2, whether or not they were sent, newest first. Default: none. */
  readonly earlier?: readonly number[] | undefined
  /** True if more batches have the same ids than the journal examines, so that the oldest are missing from `earlier`. */
  readonly isCut?: boolean | undefined
  /**
   * Present if newer records of its keys keep the new batch from replacing the known one. Lists those that are open or unknown. The list is
   * empty if newer records were already confirmed and superseded records of the known batch.
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
       * The nearest older open record in another batch, for each position that has one with the same key. Records do not end in their
       * order: the caller sends a record only after its predecessor has ended and `olderOpen` finds no other one.
       */
      readonly after: Predecessors
      /** The effective time of receipt in milliseconds since the epoch: never earlier than that of the previous batch. */
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

/** A record as the journal stores it. While the record is open again, `answer`, `reason` and `retry` are those of its last outcome. */
export interface StoredRecord {
  readonly position: number
  readonly state: RecordState
  readonly answer: string | undefined
  readonly reason: string | undefined
  readonly retry: 'resend' | number | undefined
  /** True if a newer record of the key was confirmed or replaced this one, which is then never sent again. */
  readonly superseded: boolean
  /** How often the record was opened: 1 if it was never reopened. */
  readonly attempts: number
}

/** A record and an older one of its key that V3 serves and that is open, or is unknown and will be read back. */
export interface OlderUnsettled {
  readonly own: RecordRef
  readonly older: RecordRef
  readonly isOpen: boolean
}

export interface KnownMarks {
  /** Returns when older records were confirmed with this mark, in milliseconds since the epoch, or NaN for a mark without a time. */
  readonly confirmedAt: (externalId: string) => readonly number[]
  /** Older records with an unknown outcome since the last confirmed one. One of them may be the current mark. */
  readonly lost: readonly RecordRef[]
  /** Older records with an unknown outcome before the last confirmed one. They are current only if the service keeps several marks. */
  readonly lostBefore: readonly RecordRef[]
  /** `open` if a newer record is open, parked or unknown, so that it may be applied. `confirmed` if a newer record was confirmed. */
  readonly newer: 'none' | 'open' | 'confirmed'
}

export interface DueRecords {
  readonly batch: number
  readonly positions: readonly number[]
}

/** Lists, for each position, the nearest older open record of its key, if there is one. */
export type Predecessors = ReadonlyMap<number, readonly RecordRef[]>

export interface ReopenResult {
  readonly lease: number
  readonly after: Predecessors
  /** The earlier reasons of those reopened records that were unknown. Default: none. */
  readonly unknown?: ReadonlyMap<number, string>
}

/** An orphaned batch, with the nearest older open record in another batch for each of its open records. */
export interface TakenOver {
  readonly batch: number
  readonly lease: number
  readonly after: Predecessors
}

/** Counts since the journal was created. */
export type Balance = { readonly partner: string; readonly received: number } & Readonly<
  Record<RecordState, number>
>

/**
 * The durable store of writes. Every record is stored before it is sent, and its outcome is stored before the client is told. A record
 * that cannot be stored must not be sent: the call fails with `ADP_JOURNAL_UNAVAILABLE` (503), or with `ADP_OUTCOME_UNKNOWN` (504) if the
 * record may have been stored.
 *
 * Several instances may share one journal; the order of `begin` is the order of writes for all of them. An instance owns the batches that
 * it began or took over, as long as it renews its lease.
 */
export interface Journal {
  /** False for a journal without a store, which ignores payloads, credentials, ids and content. */
  readonly durable: boolean
  /** The secret that signs texts such as next links. All instances of one journal share it, and it survives restarts. */
  readonly linkSecret: Uint8Array
  /** Records are read back before they are posted until this time (ms since the epoch), because sent ones may be lost. */
  readonly readBackUntilMs: number
  /**
   * Stores a batch durably before anything of it is sent. Throws `ADP_JOURNAL_UNAVAILABLE` if the batch is not stored and never will be.
   * Throws `ADP_OUTCOME_UNKNOWN` if it may have been stored; another instance may then send it. Throws `ADP_OVERLOADED` if too much is
   * stored for the owner, or for all owners whose credentials were never accepted.
   */
  begin(batch: NewBatch): Promise<BeginResult>
  /**
   * Records that the reply to a batch was written out completely. If another batch with the same owner and ids arrives later, the
   * answered batch is retired: its bytes are a new batch from then on. For a newcomer this happens when its credentials are accepted. The
   * record becomes durable with the next `begin` or shortly after. If the process ends earlier, the batch counts as unanswered and is
   * recognised again.
   */
  answered(batch: number): void
  /**
   * Stores outcomes durably and retries while the journal is unavailable. Throws `ADP_JOURNAL_UNAVAILABLE` after the last attempt. Throws
   * `ADP_JOURNAL_LOST` if another instance has taken over the batch, or if this instance holds the batch again but under another lease
   * than `lease`. The outcome must then not be reported, because another run finishes the batch.
   */
  settle(batch: number, outcomes: readonly Settled[], lease?: number): Promise<void>
  /** Ends a batch with rejected credentials: counts its `open` open records as refused and deletes it. Throws the errors of `settle`. */
  forget(batch: number, open: number, lease: number): Promise<void>
  /**
   * Reopens records of a batch that are not final, for this instance. Skips records that are final, are open, or have a newer record of
   * their key that is open or may have been applied. `credentials` replace the stored ones. The caller keeps the records that are
   * reopened together in order; each record waits for an older one of its batch that was already open.
   */
  reopen(
    batch: number,
    positions: readonly number[],
    credentials: string | undefined,
    /** With `beforeRelay`, open records that V2 serves do not prevent reopening, because they wait for these records. */
    how?: 'beforeRelay',
  ): Promise<ReopenResult>
  load(batch: number): Promise<StoredBatch | undefined>
  /**
   * Returns what is known of the other records with the key of `record`. Their places decide which are older or newer. With `sinceMs`
   * (milliseconds since the epoch), confirmed records of other batches received from that time on also count as newer.
   */
  knownMarks(record: RecordRef, sinceMs?: number): Promise<KnownMarks>
  /** Returns, for each record, the nearest older open record of its key in any batch, or `undefined` if there is none. */
  olderOpen(records: readonly RecordRef[]): Promise<readonly (RecordRef | undefined)[]>
  /** Returns the older records of the same keys that V3 serves and whose outcome is not certain, in one consistent read. */
  olderUnsettled(records: readonly RecordRef[]): Promise<readonly OlderUnsettled[]>
  /** Returns those of `records` that are still open. Newer records of their keys wait for them. */
  stillOpen(records: readonly RecordRef[]): Promise<readonly RecordRef[]>
  /** Returns the open records of these batches that block an open record of the same key in a newer batch. */
  blocking(batches: readonly number[]): Promise<readonly RecordRef[]>
  /** Takes over the batches with open records whose instance is dead, oldest first. The caller loads and finishes each. */
  takeOver(): Promise<readonly TakenOver[]>
  /**
   * Finds batches of this instance with open records that no run in this process works on, oldest first. `isAttended` says which batches
   * have a run. A batch is returned by the second call at the earliest, and never while a call that may have opened its records is
   * unanswered.
   */
  findAbandoned(isAttended: (batch: number) => boolean): Promise<readonly TakenOver[]>
  /** Asks the instance that owns a batch to hand it over to this one, which has the client's credentials and can finish it. */
  askFor(batch: number): Promise<void>
  /** Hands over those of `batches` that live instances have asked for. Returns the batches that this instance no longer owns. */
  handOver(batches: readonly number[]): Promise<readonly number[]>
  /** Returns due records, oldest first; open them with `reopen`. Includes records due so far ahead that a clock must have been set back. */
  due(nowMs: number, limit: number): Promise<readonly DueRecords[]>
  balances(): Promise<readonly Balance[]>
  /** Returns the number of open or due records that V3 serves, by partner. Partners without such a record are absent. */
  unsettled(): Promise<ReadonlyMap<string, number>>
  /** Returns the number of dead letters by partner. Partners without one are absent. */
  deadLetters(): Promise<ReadonlyMap<string, number>>
  /** Returns the text that all instances share under a name, or `undefined` if no text has the name. The text never contains a value of a mark. */
  readNote(name: string): Promise<string | undefined>
  writeNote(name: string, text: string): Promise<void>
  /**
   * Returns the number of this instance's lease, or `undefined` if other instances may have declared this one dead. Without a lease the
   * instance must not send anything. Batches begun or taken over under a lost lease belong to others, even after a new lease begins.
   * Checks the lease against two clocks.
   */
  lease(): number | undefined
  /** Renews the lease and returns its number, a new one if this instance was declared dead, or `undefined` on timeout. Never rejects. */
  renewLease(): Promise<number | undefined>
  /** Returns false while the last attempt to reach the store has failed. */
  isAvailable(): boolean
  /** Returns true from the time that damage was found until the store accepts writes again. */
  isDamaged(): boolean
  /** Ends the lease and closes the store. Other instances, or the next start, finish the open records. */
  close(): Promise<void>
}
