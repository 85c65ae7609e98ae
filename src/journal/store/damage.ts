import { AdapterError } from '../../errors.ts'
import { isIntactBatch, type SummedBatch } from '../schema/row-sums.ts'

/** The damaged part. */
export interface Damage {
  /** For the operator, without any value: `its file was deleted`. */
  readonly what: string
  /** True: one batch is concerned, and the rest of the journal is well. */
  readonly isolated: boolean
}

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

/** The error for a request that met a damaged row. `what` names the table and the batch. */
export function damagedRow(what: string, cause?: unknown): AdapterError {
  return new AdapterError(
    'ADP_JOURNAL_DAMAGED',
    `The journal is damaged: ${what}. Nothing was sent and nothing is answered from it. Its operator has to accept the loss.`,
    { cause, details: [{ code: 'ADP_JOURNAL_DAMAGED', message: what, target: 'row' }] },
  )
}

/** The error for records that are not as they were written. */
export const damagedRecord = (batch: number): AdapterError =>
  damagedRow(`the checksum of a record of batch ${batch} is wrong`)

/** Error: `ADP_JOURNAL_DAMAGED` for the row of a batch that is not as it was written. */
export function expectIntactBatch(batch: number, row: SummedBatch & { readonly sum: number | null }): void {
  if (!isIntactBatch(row)) throw damagedRow(`the checksum of batch ${batch} is wrong`)
}

/** True for an error of one batch, whose rows cannot be trusted. */
export const isDamagedBatch = (error: unknown): boolean => damageOf(error)?.isolated === true

/** The damage that an error tells of, also one that was sent by another thread; undefined: it tells of something else. */
export function damageOf(error: unknown): Damage | undefined {
  if (error instanceof AdapterError) {
    const [detail] = error.details
    if (error.code !== 'ADP_JOURNAL_DAMAGED' || detail === undefined) return undefined
    return { what: detail.message, isolated: detail.target === 'row' }
  }
  if (error instanceof RangeError && 'code' in error && error.code === 'ERR_OUT_OF_RANGE') {
    return { what: 'a row holds a number that is never written', isolated: true }
  }
  if (typeof error !== 'object' || error === null || !('damage' in error)) return undefined
  const { damage } = error
  if (typeof damage !== 'object' || damage === null) return undefined
  if (!('what' in damage) || !('isolated' in damage)) return undefined
  return { what: String(damage.what), isolated: damage.isolated === true }
}
