import type { Write } from './write.ts'

/** The record of a part that says created, as far as it can be checked. */
export interface CreatedMark {
  readonly externalId: unknown
  readonly learner: unknown
  readonly event: unknown
  readonly code: unknown
  readonly comment: unknown
}

/** What a client was told about one record. A lost connection tells nothing and is not an answer. */
export type Answer =
  | { readonly kind: 'created'; readonly mark: CreatedMark }
  | { readonly kind: 'refused'; readonly status: number }
  /** A newer mark stands: this one was not applied and never will be. */
  | { readonly kind: 'superseded' }
  /** A newer mark took its place: it never will be applied, and may have been before. */
  | { readonly kind: 'gaveWay' }
  | { readonly kind: 'notApplied' }
  /** The request as a whole was turned away. */
  | { readonly kind: 'busy' }
  /** The reply as a whole says that the outcome is not known at present: it neither gives nor changes an answer. */
  | { readonly kind: 'noOutcome' }
  | { readonly kind: 'unknown' }

/** One write as its client saw it. Times are positions in one sequence that all clients of a run share. */
export interface WriteHistory {
  readonly write: Write
  /** The token that its client sends; undefined where all have the same. */
  readonly token?: string
  /** The school that its client names; undefined: none. */
  readonly school?: string | undefined
  /** Number of its batch and its place there. */
  readonly batch: number
  readonly position: number
  /** When its bytes first left. */
  readonly sentAt: number
  /** When each request with its bytes left, the first one included. */
  readonly sends: readonly number[]
  /** Its client has given it up: it must not send it any longer. */
  readonly isAbandoned?: boolean
  readonly answers: { readonly at: number; readonly answer: Answer }[]
}

/** The final answer to one write, and what the same bytes were answered later. */
export interface ChangedPart {
  readonly name: string
  readonly first: string
  readonly later: string
}

/** What a run of clients saw. */
export interface History {
  readonly writes: readonly WriteHistory[]
  /** Batches that were sent again after every record had its final answer. */
  readonly replays: number
  /** Those of them, by number, whose reply was not the first one byte for byte. */
  readonly changedReplays: readonly number[]
  /** Batches that were final and whose reply could not be had again, though nothing was broken any longer. */
  readonly missingReplays: readonly number[]
  /** Final answers that came again with other bytes. */
  readonly changedParts: readonly ChangedPart[]
}

const finalKinds: readonly Answer['kind'][] = ['created', 'refused', 'superseded', 'gaveWay']

/** False for a reply that as a whole held no outcome of any record: what was answered before stands. */
export function holdsOutcome({ kind }: Answer): boolean {
  return kind !== 'busy' && kind !== 'noOutcome'
}

/** Final: its client has nothing more to do, and is never told anything else. */
export function isFinalAnswer({ kind }: Answer): boolean {
  return finalKinds.includes(kind)
}

/** True when the client was told what became of it. */
export function isFinal({ answers }: WriteHistory): boolean {
  return answers.some(({ answer }) => isFinalAnswer(answer))
}
