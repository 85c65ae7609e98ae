import { AdapterError } from '../../errors.ts'

/** Why an exchange was not compared. */
export type SkipReason =
  /** A body is larger than comparisons read. */
  | 'tooLarge'
  /** The encoding of a body is not known, or its bytes are not of it. */
  | 'encoding'
  /** An answer has none of the forms that the interface gives. */
  | 'form'
  /** The request was refused as a whole. */
  | 'refused'
  /** It has no record to compare. */
  | 'empty'
  /** A newer mark of each of its learners and events came meanwhile. */
  | 'superseded'
  /** A page that only the side which gave its link can continue. */
  | 'nextLink'
  /** The answer goes on in a next link: the first pages of two orders have other rows. */
  | 'paged'
  /** The first rows of an order that was not asked for. */
  | 'unordered'
  /** The side has answered 429 within five minutes. */
  | 'silence'
  /** No call was free in time. */
  | 'pace'
  /** The adapter stopped. */
  | 'stopped'
  /** An error of the comparison itself; the log has it. */
  | 'failed'

/** Why a call did not leave; undefined: it did, or would have. */
export function unsentReason(cause: unknown): UnsentError['reason'] | undefined {
  if (cause instanceof UnsentError) return cause.reason
  return cause instanceof Error && cause.cause !== undefined ? unsentReason(cause.cause) : undefined
}

/** A call that the pace of comparisons kept from leaving. */
export class UnsentError extends AdapterError {
  readonly reason: 'silence' | 'pace'

  constructor(reason: 'silence' | 'pace') {
    super('ADP_OVERLOADED', 'The comparison did not get a call. Nothing was sent.')
    this.reason = reason
  }
}
