import { AdapterError } from '../errors.ts'

/**
 * Why a group was not made durable. `transient`: nothing was kept, and it can be tried again. `doubtful`: the connection was
 * lost while the transaction ended. `refused`: the data cannot be stored at all. `expired`: this instance is no longer
 * known, since another one took it for dead. `internal`: a statement that this database does not understand, which no
 * repetition changes. `damaged`: the database is not the one that this journal has written.
 */
export interface StoreError {
  readonly kind: 'transient' | 'doubtful' | 'refused' | 'expired' | 'internal' | 'damaged'
  /** For the operator, without any value: `the disk is full`. */
  readonly message: string
  readonly cause?: unknown
  /** True: others were in the way, and the store itself is well. */
  readonly contended?: boolean
}

/** Why a group was rolled back whose gate was closed. */
export const gaveUp: StoreError = { kind: 'transient', message: 'it does not answer in time' }

/** Why a group of an instance was rolled back that others took for dead. */
export const expired: StoreError = { kind: 'expired', message: 'another instance has taken over' }

/** The error of opening a damaged journal: the damage, its place, and the remedy. */
export function damagedStore(place: string, what: string, cause?: unknown): AdapterError {
  return new AdapterError(
    'ADP_JOURNAL_DAMAGED',
    `The journal ${place} is damaged or was replaced: ${what}. Writes on it could be posted twice. ` +
      'Restore the journal with the files beside it, or list the consequences of accepting the loss: markbridge journal adopt.',
    { cause },
  )
}

/** The error for a request that met a damaged journal. `what` holds no value. */
export function damagedJournal(what: string, cause?: unknown): AdapterError {
  return new AdapterError(
    'ADP_JOURNAL_DAMAGED',
    `The journal is damaged or was replaced: ${what}. Nothing was sent. Its operator has to restore it or to accept the loss.`,
    { cause, details: [{ code: 'ADP_JOURNAL_DAMAGED', message: what, target: 'journal' }] },
  )
}

/** The error for a request that met a damaged request or answer. `what` names the kind and the batch. */
export function damagedRow(what: string, cause?: unknown): AdapterError {
  return new AdapterError(
    'ADP_JOURNAL_DAMAGED',
    `The journal is damaged: ${what}. Nothing was sent and nothing is answered from it. Its operator has to accept the loss.`,
    { cause, details: [{ code: 'ADP_JOURNAL_DAMAGED', message: what, target: 'row' }] },
  )
}

/** True for an error of one batch, whose request or answers cannot be read. */
export const isDamagedBatch = (error: unknown): boolean =>
  error instanceof AdapterError && error.code === 'ADP_JOURNAL_DAMAGED' && error.details[0]?.target === 'row'

/** What an error says of a damaged journal, also one that was sent by another thread; undefined: it says nothing of that. */
export function damageOf(error: unknown): string | undefined {
  if (error instanceof AdapterError)
    return error.code === 'ADP_JOURNAL_DAMAGED' ? error.details[0]?.message : undefined
  if (typeof error !== 'object' || error === null || !('damage' in error)) return undefined
  return typeof error.damage === 'string' ? error.damage : undefined
}
