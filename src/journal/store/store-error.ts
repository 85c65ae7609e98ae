/**
 * Why a group was not made durable. `transient`: nothing was kept, and it can be tried again. `doubtful`: the connection was
 * lost while the transaction ended. `refused`: the data cannot be stored at all. `expired`: this instance is no longer
 * known, since another one took it for dead. `internal`: a statement that this database does not understand, which no
 * repetition changes. `damaged`: the database, or a row of it, is not what this journal has written.
 */
export interface StoreError {
  readonly kind: 'transient' | 'doubtful' | 'refused' | 'expired' | 'internal' | 'damaged'
  /** For the operator, without any value: `the disk is full`. */
  readonly message: string
  readonly cause?: unknown
  /** True: others were in the way, and the store itself is well. */
  readonly contended?: boolean
  /** True: one operation is concerned, and the store itself is well. */
  readonly isolated?: boolean
}

/** Why a group was rolled back whose gate was closed. */
export const gaveUp: StoreError = { kind: 'transient', message: 'it does not answer in time' }

/** Why a group of an instance was rolled back that others took for dead. */
export const expired: StoreError = { kind: 'expired', message: 'another instance has taken over' }
