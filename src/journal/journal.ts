import type { RecordState, SettledState } from './lifecycle.ts'

export type { RecordState, SettledState } from './lifecycle.ts'

/** One record: the number of its batch and its position there. Older records have smaller numbers, across all instances. */
export interface RecordRef {
  readonly batch: number
  readonly position: number
}

/** A batch that is about to be sent. The journal reads none of its bytes. */
export interface NewBatch {
  readonly partner: string
  /**
   * `v2`: it is sent on to V2 as it came. Such a batch is known again by one that V3 serves, and by one that V2 serves as `resendOf`
   * says. Undefined: V3 serves it.
   */
  readonly side?: 'v2' | undefined
  /**
   * Of a batch for V2: the number up to which the same batch, sent to V2 before, does not answer it; 0: each may. Undefined: none does,
   * so that V2 is sent it as often as it comes.
   */
  readonly resendOf?: number | undefined
  /**
   * The batch that V2 served and whose place this one takes: neither it nor older ones like it are found again. Records are in the same
   * positions in both.
   */
  readonly instead?: number | undefined
  /** The owner of the batch, as the caller names it. Batches of different owners are never the same. */
  readonly owner: string
  /**
   * SHA-256 over the ids in the batch's envelope, with the owner. Undefined: the envelope has no ids, so the batch is never
   * recognised as a repeated one.
   */
  readonly ids: Uint8Array | undefined
  /** SHA-256 over everything that decides what is posted and answered. */
  readonly content: Uint8Array
  /** Milliseconds since the epoch. */
  readonly receivedMs: number
  /** The request, from which the batch can be finished without its client. Encrypted at rest when the journal has a key. */
  readonly payload: Uint8Array
  /** Credentials of the client. Kept only in a journal that has a key, always encrypted; dropped with the last open record. */
  readonly credentials: string | undefined
  /**
   * True: neither V3 nor V2 has accepted its credentials yet, so what is kept for its owner stays as it is until one of its records is
   * confirmed. Default false.
   */
  readonly newcomer?: boolean
  readonly records: readonly NewRecord[]
}

/** One record of a new batch; its position is its index. */
export interface NewRecord {
  /** Records with the same key are sent one after another. Kept as a salted hash. */
  readonly key: string
  /** The answer of a record that is refused without being sent. */
  readonly refused?: Verdict
}

/** The answer to a record. */
export interface Verdict {
  /** The part of the reply. Encrypted at rest when the journal has a key. Undefined: the client got none. */
  readonly answer: string | undefined
  /** A code of `errors.ts`, of the service, or of the outcome; never a value. */
  readonly reason?: string | undefined
}

/** The mark that the service returned for a confirmed record. */
export interface ConfirmedMark {
  readonly externalId: string
  /** Its `RecordedOn`, ms since the epoch; NaN: none. */
  readonly recordedMs: number
}

/** The outcome of one open record. */
export interface Settled extends Verdict {
  readonly position: number
  readonly state: SettledState
  /**
   * Undefined: it is final. `resend`: it is sent again when the client repeats the batch. A time: it is
   * `due` then (ms since the epoch).
   */
  readonly retry?: 'resend' | number | undefined
  /** `unknown` and never posted again, since a newer record of its key would have to wait for it. */
  readonly superseded?: boolean | undefined
  /** Of a confirmed record: the mark that the service returned. Its id is kept as a salted hash. */
  readonly mark?: ConfirmedMark | undefined
  /** Its client does not know the outcome: listed with its reason until an operator dismisses it. */
  readonly deadLetter?: boolean | undefined
}

/** A batch that is a repetition of one that came before. */
export interface KnownBatch {
  readonly kind: 'known'
  readonly batch: number
  /** True while one of its records is open. */
  readonly running: boolean
  /** That of the batch before. */
  readonly side?: 'v2' | undefined
  /** The numbers under which the same batch was begun for V2 before, whether V2 was sent it or not, the newest first. Default: none. */
  readonly earlier?: readonly number[] | undefined
  /** There were more batches with the same ids than the journal looks through: `earlier` lacks the oldest. */
  readonly isCut?: boolean | undefined
  /**
   * The given batch cannot take the place of this one: newer records of its keys came since. Those that are open or unknown; empty:
   * others have superseded records of this batch that the given one does not refuse.
   */
  readonly newer?: readonly RecordRef[]
}

/** The result of `begin`. */
export type BeginResult =
  | {
      readonly kind: 'new'
      readonly batch: number
      /** The lease under which it was begun: it belongs to this instance as long as that is held. */
      readonly lease: number
      /**
       * For each position whose key has older open records in other batches: the nearest of them. The record is sent only after it
       * has ended and `olderOpen` finds no other one: records do not end in their order.
       */
      readonly after: Predecessors
      /** The time of receipt that counts, ms since the epoch: that of the batch before, where the given one is earlier. */
      readonly receivedMs: number
      /** An earlier batch had the same ids and other bytes. */
      readonly idsReused: boolean
    }
  | KnownBatch

/** A batch as the journal stores it. */
export interface StoredBatch {
  readonly batch: number
  readonly partner: string
  readonly owner: string
  /** `v2`: V2 served it, and nothing of it is ever posted to V3. */
  readonly side?: 'v2' | undefined
  readonly receivedMs: number
  /** Undefined past its retention period. */
  readonly payload: Uint8Array | undefined
  readonly credentials: string | undefined
  readonly records: readonly StoredRecord[]
}

/** A record as the journal stores it: its last outcome; while it is open again, the outcome before. */
export interface StoredRecord {
  readonly position: number
  readonly state: RecordState
  readonly answer: string | undefined
  readonly reason: string | undefined
  readonly retry: 'resend' | number | undefined
  /** A newer record of the same key was confirmed or took its place: this one is never sent again and cannot overwrite that one. */
  readonly superseded: boolean
  /** How often it was opened: 1 for a record that was never opened again. */
  readonly attempts: number
}

/** A record, and an older one of its key that V3 serves: it is open, or its outcome is unknown and is still looked for. */
export interface OlderUnsettled {
  readonly own: RecordRef
  readonly older: RecordRef
  readonly isOpen: boolean
}

/** What the journal knows of the other records of a record's key. */
export interface KnownMarks {
  /** The times at which older records were confirmed with this mark, ms since the epoch; NaN for one without a time. */
  readonly confirmedAt: (externalId: string) => readonly number[]
  /** The older records since the last confirmed one whose outcome is unknown: one of them may be the mark that stands. */
  readonly lost: readonly RecordRef[]
  /** Those before the last confirmed one: their marks stand only where the service keeps several. */
  readonly lostBefore: readonly RecordRef[]
  /** `open`: a newer record is open, parked or unknown, so it may be applied. `confirmed`: one was confirmed. */
  readonly newer: 'none' | 'open' | 'confirmed'
}

/** A batch with records that are due. */
export interface DueRecords {
  readonly batch: number
  readonly positions: readonly number[]
}

/** Records by position, each with the nearest older open record of its key, where there is one. */
export type Predecessors = ReadonlyMap<number, readonly RecordRef[]>

/** The result of `reopen`. */
export interface ReopenResult {
  /** The lease under which the records were opened. */
  readonly lease: number
  readonly after: Predecessors
  /** Of those of them that were unknown, why. Undefined: none. */
  readonly unknown?: ReadonlyMap<number, string>
}

/** An orphaned batch; for each of its open records the nearest older open record in another batch. */
export interface TakenOver {
  readonly batch: number
  /** The lease under which it was taken over. */
  readonly lease: number
  readonly after: Predecessors
}

/** The totals of one partner since the journal was created. */
export type Balance = { readonly partner: string; readonly received: number } & Readonly<
  Record<RecordState, number>
>

/**
 * The durable memory of writes. Every record is in it before it is sent, and its outcome before its client is told. What
 * cannot be kept is refused with `ADP_JOURNAL_UNAVAILABLE` (503), or `ADP_OUTCOME_UNKNOWN` (504) while it may be kept all the
 * same, and then nothing may be sent.
 *
 * Several instances may share one journal: the order of `begin` is the order of writes for all of them. An instance owns the
 * batches that it began or took over, as long as it renews its lease.
 */
export interface Journal {
  /** False for a journal without a store: it ignores payloads, credentials, ids and content. */
  readonly durable: boolean
  /** The secret that signs texts such as next links. All instances of one journal share it, also after a restart. */
  readonly linkSecret: Uint8Array
  /**
   * While the wall clock is before this time (ms since the epoch), new records are looked for in V3 before they are posted: the
   * journal may have lost what was sent before.
   */
  readonly readBackUntilMs: number
  /**
   * Makes a batch durable before anything of it is sent. Errors: `ADP_JOURNAL_UNAVAILABLE` where it certainly is not and never will
   * be; `ADP_OUTCOME_UNKNOWN` where it may be, and then others may send it; `ADP_OVERLOADED` where too much is kept for its owner, or for
   * all owners together whose credentials were never accepted.
   */
  begin(batch: NewBatch): Promise<BeginResult>
  /**
   * Notes that the reply to a batch was written out whole. When another batch of the same owner and ids arrives after that, the
   * first is retired: its bytes are a new batch from then on, or from when the credentials of the other are accepted. Becomes durable with the next `begin` or shortly after; a process
   * that ends before leaves the batch unanswered, so that it is found again.
   */
  answered(batch: number): void
  /**
   * Makes outcomes durable. Tries again while the journal cannot be reached. Errors: `ADP_JOURNAL_UNAVAILABLE` when it gave
   * up, `ADP_JOURNAL_LOST` when another instance has taken the batch over: then the outcome must not be reported from here. The
   * same error where this instance holds the batch again, but not under `lease`: another run finishes it then.
   */
  settle(batch: number, outcomes: readonly Settled[], lease?: number): Promise<void>
  /**
   * Ends a batch whose credentials were denied before anything of it was applied: its open records, so many, count as refused, and
   * nothing of it is kept. Errors: those of `settle`.
   */
  forget(batch: number, open: number, lease: number): Promise<void>
  /**
   * Opens records of a batch again that are not final, for this instance. Left out is what is final, is open, or has a newer
   * record of its key that is open or may have been applied. `credentials` replace those that are kept. Those that are opened
   * together are kept in order by their sender, and each waits for an older one of its batch that was open before.
   */
  reopen(
    batch: number,
    positions: readonly number[],
    credentials: string | undefined,
    /** Open records that V2 serves forbid nothing, since they wait for these. */
    how?: 'beforeRelay',
  ): Promise<ReopenResult>
  /** Reads one batch; undefined: it is not kept any longer. */
  load(batch: number): Promise<StoredBatch | undefined>
  /**
   * What is known of the other records of the key of this one. They are older or newer by their places; with `sinceMs` those of other
   * batches that were received from then on and are confirmed count as newer, too (ms since the epoch).
   */
  knownMarks(record: RecordRef, sinceMs?: number): Promise<KnownMarks>
  /** For each of the records the nearest older open one of its key, also of its own batch. */
  olderOpen(records: readonly RecordRef[]): Promise<readonly (RecordRef | undefined)[]>
  /** The older records of the keys of these that V3 serves and whose outcome is not certain, as they are at one moment. */
  olderUnsettled(records: readonly RecordRef[]): Promise<readonly OlderUnsettled[]>
  /** The records that are still open: a newer record of the same key waits for them. */
  stillOpen(records: readonly RecordRef[]): Promise<readonly RecordRef[]>
  /** Open records of these batches that an open record of the same key in a newer batch waits for. */
  blocking(batches: readonly number[]): Promise<readonly RecordRef[]>
  /**
   * Takes over the batches with open records whose instance is gone, oldest first. Each is to be loaded and finished.
   */
  takeOver(): Promise<readonly TakenOver[]>
  /**
   * Finds the batches of this instance with open records that nothing in this process works on, for whatever reason, oldest
   * first; `isAttended` says what is worked on. A batch is found by the second call at the earliest, and never while a call that
   * may have opened its records has not been answered.
   */
  findAbandoned(isAttended: (batch: number) => boolean): Promise<readonly TakenOver[]>
  /**
   * Asks the instance that has a batch to hand it over to this one, which can finish it. A client may reach another instance each
   * time than the one that lacks its credentials.
   */
  askFor(batch: number): Promise<void>
  /** Hands those of these batches over that live instances asked for; gives the batches that are not this instance's any longer. */
  handOver(batches: readonly number[]): Promise<readonly number[]>
  /** Records whose time has come, or lies so far ahead that a clock was set back since, oldest first; they are opened with `reopen`. */
  due(nowMs: number, limit: number): Promise<readonly DueRecords[]>
  balances(): Promise<readonly Balance[]>
  /** How many records of each partner that V3 serves are open or due; a partner without one is left out. */
  unsettled(): Promise<ReadonlyMap<string, number>>
  /** How many dead letters each partner has; a partner without one is left out. */
  deadLetters(): Promise<ReadonlyMap<string, number>>
  /** A text that all instances keep under a name, without a value of a mark; undefined: none. */
  readNote(name: string): Promise<string | undefined>
  writeNote(name: string, text: string): Promise<void>
  /**
   * The number of this instance's lease; undefined when it may have been taken for dead: it must not send anything then. Once a
   * lease was lost, what was begun or taken over under it belongs to others, also when there is a new one. Reads two clocks.
   */
  lease(): number | undefined
  /**
   * Renews the lease now and gives its number, which is a new one where others took this instance for dead; undefined when the
   * journal does not say in time. Never rejects.
   */
  renewLease(): Promise<number | undefined>
  /** False while the last try to reach the store failed. */
  isAvailable(): boolean
  /** True from the time that damage was found until the store takes writes again. */
  isDamaged(): boolean
  /** Ends the lease and closes the store; open records are left to other instances, or to the next start. */
  close(): Promise<void>
}
