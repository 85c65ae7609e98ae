import type { Write } from './write.ts'

/** The fields of the record in a "created" part that are checked. */
export interface CreatedMark {
  readonly externalId: unknown
  readonly learner: unknown
  readonly event: unknown
  readonly code: unknown
  readonly comment: unknown
}

/** An answer to a client about one record. A lost connection is not an answer. */
export type Answer =
  | { readonly kind: 'created'; readonly mark: CreatedMark }
  | { readonly kind: 'refused'; readonly status: number }
  /** A newer mark exists. The record was not applied and never will be. */
  | { readonly kind: 'superseded' }
  /** A newer mark took the place of the record. The record will never be applied from now on, but may have been applied before. */
  | { readonly kind: 'gaveWay' }
  | { readonly kind: 'notApplied' }
  /** The request was rejected as a whole. */
  | { readonly kind: 'busy' }
  /** The whole reply says that the outcome of its records is currently unknown. Earlier answers remain valid. */
  | { readonly kind: 'noOutcome' }
  | { readonly kind: 'unknown' }

/** One write as its client saw it. Times are positions in one sequence that all clients of a run share. */
export interface WriteHistory {
  readonly write: Write
  /** The token that its client sends, or `undefined` if all clients send the same token. */
  readonly token?: string
  /** The school that its client names, or `undefined` if it names none. */
  readonly school?: string | undefined
  /** The number of its batch and its position in the batch. */
  readonly batch: number
  readonly position: number
  /** The time at which its client first sent it. */
  readonly sentAt: number
  /** The times at which its client sent it, including the first time. */
  readonly sends: readonly number[]
  /** True if the client of the write gave it up and must not send it any more. */
  readonly isAbandoned?: boolean
  readonly answers: { readonly at: number; readonly answer: Answer }[]
}

/** The final answer to one write, and a later answer to the same bytes that differs from it. */
export interface ChangedPart {
  readonly name: string
  readonly first: string
  readonly later: string
}

/** The observations of a run's clients. */
export interface History {
  readonly writes: readonly WriteHistory[]
  /** The number of resends of batches in which every record already had its final answer. */
  readonly replays: number
  /** The numbers of the resent batches whose reply differed from the first reply. */
  readonly changedReplays: readonly number[]
  /** The numbers of finished batches whose resends got no reply with an outcome, although there were no more faults. */
  readonly missingReplays: readonly number[]
  /** The final answers that arrived again with other bytes. */
  readonly changedParts: readonly ChangedPart[]
}

const finalKinds: readonly Answer['kind'][] = ['created', 'refused', 'superseded', 'gaveWay']

/** Returns false for the answer of a reply that holds no outcome of any record, so that earlier answers remain valid. */
export function holdsOutcome({ kind }: Answer): boolean {
  return kind !== 'busy' && kind !== 'noOutcome'
}

/** Returns true for a final answer. The client need not resend the write, and must never get a different answer about it. */
export function isFinalAnswer({ kind }: Answer): boolean {
  return finalKinds.includes(kind)
}

export function isFinal({ answers }: WriteHistory): boolean {
  return answers.some(({ answer }) => isFinalAnswer(answer))
}
