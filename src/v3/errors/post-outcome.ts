import type { LossReason, NotApplied } from '../../upstream/index.ts'
import type { V3Reply } from '../record/v3-record.ts'
import type { UpstreamError } from './upstream-error.ts'

export type { NotAppliedReason } from '../../upstream/index.ts'

/**
 * Why the outcome of a write is not known: it left, and no readable reply arrived. `overwritten`: the read-back did not find
 * it, but a newer mark of another client. `superseded`: it found another mark, and the journal has a newer record. `stillTried`: it has not been applied yet, and the background may post it.
 */
export type UnknownReason =
  LossReason | 'serverError' | 'otherRecord' | 'overwritten' | 'superseded' | 'stillTried'

/**
 * The outcome of one POST. `accepted`: the service has it. `refused`: the service rejected it (4xx). `notApplied`: it never
 * left, or the service said that it did not take it up (429, 503). `unknown`: it may have been applied or not; it must
 * never be reported as a failure (product contract, "no outcome guessed").
 */
export type PostOutcome =
  | { readonly kind: 'accepted'; readonly reply: V3Reply }
  | { readonly kind: 'refused'; readonly error: UpstreamError }
  | NotApplied
  | { readonly kind: 'unknown'; readonly reason: UnknownReason }
