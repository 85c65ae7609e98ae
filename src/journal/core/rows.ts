import type { SameIds } from '../judge-arrival.ts'
import type { SummedBatch } from '../schema/row-sums.ts'
import type { LedgerChanges } from '../store/ledger-changes.ts'
import type { ConfirmedMark } from '../store/mark-hash.ts'
import type { BeginOperation, SettleOperation, Three } from '../store/operations.ts'
import type { SealedFor, SealedPlace } from '../store/seal.ts'

/** The rows that begins read before they change anything. No other instance begins until they are durable. */
export interface BeginRows {
  /** Batches that are not retired, by `nameOf`, the newest first. */
  readonly sameIds: ReadonlyMap<string, readonly SameIds[]>
  /** Numbers for new batches, higher than all before, in order; at least one for each operation. */
  readonly numbers: readonly number[]
  /** When the newest batch was received; 0: there is none. */
  readonly latestMs: number
  /** An instance of a version without checksums uses the journal too. */
  readonly isOlderServed: boolean
  /** The batch whose place the only one of these begins takes, locked; undefined: it takes none, or that one is not kept. */
  readonly replaced?: BatchRows | undefined
}

/** The state and reason that a record has. */
export interface KeptOutcome {
  readonly state: number
  readonly reason: string | null
}

/** A batch whose records are settled or superseded. */
export interface SettledBatch {
  readonly partner: string
  readonly ownerId: string
  /** The instance that owns it. */
  readonly owner: number
  /** How many of its records are active. */
  readonly active: number
  /** A code of `side.ts`. */
  readonly side: number
  /** 1 while its credentials were not accepted. */
  readonly newcomer: number
  /** The batches that it retires then; null: none. */
  readonly retires: readonly number[] | null
}

/** An active record that is older than one of its key that is settled and supersedes it. */
export interface OlderRecord {
  readonly batch: number
  readonly position: number
  readonly state: number
}

/** The rows that settles read before they change anything; the batches are locked. */
export interface SettleRows {
  /** Those of the operations and, once it was called, those of `older`. */
  readonly batches: ReadonlyMap<number, SettledBatch>
  /** By batch and position: records of the operations that are not open. One that is not there has a state that no outcome has. */
  readonly closed: ReadonlyMap<number, ReadonlyMap<number, KeptOutcome>>
  /**
   * What these operations supersede, each record once: as many as there are, however many newer ones of a key are settled. Also those that
   * the same operations settle. Undefined: the rows were read for more operations, and are to be read again for these.
   */
  older(operations: readonly SettleOperation[]): readonly OlderRecord[] | undefined
}

/** A record of a batch that is opened again, or replaced. */
export interface BatchRecord {
  readonly position: number
  readonly state: number
  readonly isActive: boolean
  readonly isSuperseded: boolean
  readonly isIntact: boolean
  /** Identifies the key: equal for records of one key, different for others. */
  readonly key: string
}

/** A batch that is opened again, or replaced, with its records; it is locked. */
export interface BatchRows {
  readonly batch: SummedBatch & { readonly sum: number | null }
  /** In their order. */
  readonly records: readonly BatchRecord[]
  /** The newest record of a key that is open or may have been applied: nothing older of the key is opened again. */
  standing(key: string): { readonly batch: number; readonly position: number } | undefined
}

/** A batch to be inserted, with its records. */
export interface InsertedBatch extends SummedBatch {
  readonly id: number
  readonly sum: number
  readonly newcomer: number
  readonly retires: string | null
  readonly bytes: number
  readonly operation: BeginOperation
}

/** The outcome of an open record, as it is written. */
export interface WrittenOutcome extends KeptOutcome {
  readonly position: number
  readonly again: number | null
  readonly deadLetter: number
  readonly superseded: number
  readonly mark: ConfirmedMark | undefined
}

/** The result of an operation once its transaction is durable. */
export type Later<Value> = () => Value

/**
 * Writes rows in the order of the calls. Each database has its own; what it does not do at once it has done before the transaction
 * ends.
 */
export interface RowWriter {
  insertBatch(batch: InsertedBatch): void
  /** Takes the checksums of a batch away: instances of older versions change rows and not their sums. */
  dropSums(batch: number): void
  /** Encrypts bytes of a batch and writes them; credentials replace those that are there. */
  seal(place: SealedPlace, of: SealedFor, plain: Uint8Array): void
  retire(batches: readonly number[]): void
  /** The credentials of a batch were accepted. */
  accept(batch: number): void
  /** Deletes a batch with all that is kept of it. */
  forget(batch: number): void
  noteAnswered(batches: readonly number[]): void
  /** Settles open records of a batch, in order of their positions. */
  settle(batch: number, outcomes: readonly WrittenOutcome[]): void
  supersede(batch: number, positions: readonly number[]): void
  /** Opens active records again. */
  reopen(batch: number, positions: readonly number[]): void
  setOwner(batch: number, instance: number): void
  /** Adds to the numbers of open and of active records. */
  addCounts(batch: number, open: number, active: number): void
  dropCredentials(batch: number): void
  /** The nearest older open record of the key of each of these open records, where there is one. */
  olderOpen(batch: number, positions: readonly number[]): Later<readonly Three[]>
}

/** The shared input of the changes of one transaction. */
export interface ChangeContext {
  readonly instance: number
  /** Milliseconds since the epoch. */
  readonly nowMs: number
  readonly replayForMs: number
  readonly forgottenBatch: number
  /** True: credentials can be encrypted, and are kept. */
  readonly hasKey: boolean
  readonly ledger: LedgerChanges
  readonly write: RowWriter
}
