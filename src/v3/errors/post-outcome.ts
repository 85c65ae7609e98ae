import type { UpstreamError } from './upstream-error.ts'
import type { V3Reply } from '../record/v3-record.ts'

/**
 * Why nothing can be said of a write: it left, and no readable answer came back. `overwritten`: read back, it is not there,
 * but a newer mark of somebody else is. `stillTried`: it has not been applied so far, and the background may post it.
 */
export type UnknownReason =
  | 'connectionLost'
  | 'timeout'
  | 'unreadableReply'
  | 'serverError'
  | 'otherRecord'
  | 'overwritten'
  | 'stillTried'

/** Why a write was not made. */
export type NotAppliedReason =
  | 'notConnected'
  | 'budget'
  | 'queueFull'
  | 'batchRefused'
  | 'throttled'
  | 'unavailable'
  | 'redirected'
  | 'stopped'
  | 'leaseLost'

/**
 * What became of one POST. `accepted`: the service has it. `refused`: the service said no (4xx). `notApplied`: it never
 * left, or the service said that it did not take it up (429, 503). `unknown`: it may have been applied or not; it must
 * never be told as a failure (product contract, "no outcome guessed").
 */
export type PostOutcome =
  | { readonly kind: 'accepted'; readonly reply: V3Reply }
  | { readonly kind: 'refused'; readonly error: UpstreamError }
  | {
      readonly kind: 'notApplied'
      readonly reason: NotAppliedReason
      readonly retryAfterMs: number | undefined
    }
  | { readonly kind: 'unknown'; readonly reason: UnknownReason }
