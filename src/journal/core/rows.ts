import type { NewBatch, RecordRef } from '../journal.ts'
import { stateCodes } from '../lifecycle.ts'
import type { SealedFor } from '../seal.ts'

export interface ChangeContext {
  readonly instance: number
  /** Wall-clock time in milliseconds since the epoch. */
  readonly nowMs: number
  readonly replayForMs: number
  readonly ageMs: number
  /** A batch that began when the journal was older than this age, in milliseconds, is still recognised, whatever the wall clock says. */
  readonly forgottenAgeMs: number
  readonly hasKey: boolean
  readonly changes: Changes
}

export interface BatchRow {
  readonly batch: number
  readonly partner: string
  readonly owner: string
  readonly instance: number
  readonly open: number
  readonly onV2: number
  /** 1 until V3 or V2 accepts the credentials of the batch, then 0. */
  readonly newcomer: number
  /** The batches to retire once the credentials are accepted, as a JSON array of numbers. */
  readonly retires: string
}

export interface RecordRow {
  readonly position: number
  readonly state: number
  readonly active: number
  readonly superseded: number
  readonly reason: string | null
  readonly key: string
}

export interface BatchRows {
  readonly batch: BatchRow
  readonly records: readonly RecordRow[]
}

/** Maps a key to one of its records, such as its newest open record. Keys without a matching record are absent. */
export type ByKey = ReadonlyMap<string, RecordRef>

export interface OutcomeRow extends RecordRef {
  readonly state: number
  readonly active: number
  readonly retry: number | null
  readonly reason: string | null
  readonly dead_letter: number
  readonly superseded: number
  readonly mark: string | null
  readonly settled_ms: number
}

/** Content to encrypt and store. New credentials replace the stored credentials of the batch. */
export interface Blob extends SealedFor {
  readonly plain: Uint8Array
}

export interface Changes {
  readonly batches: Readonly<Record<string, string | number | null>>[]
  /** The records of new batches, which are all written as open. */
  readonly records: { readonly batch: number; readonly keys: readonly string[] }[]
  readonly blobs: Blob[]
  readonly outcomes: OutcomeRow[]
  readonly reopened: Map<number, readonly number[]>
  /** Changes to the numbers of records of each stored batch. `states` has one number for each state, indexed by state code. */
  readonly counts: Map<number, { readonly states: number[]; active: number }>
  readonly retired: number[]
  readonly accepted: number[]
  readonly forgotten: number[]
  /** Changes to the totals of each partner, indexed by state code. */
  readonly totals: Map<string, number[]>
}

export const noChanges = (): Changes => ({
  batches: [],
  records: [],
  blobs: [],
  outcomes: [],
  reopened: new Map(),
  counts: new Map(),
  retired: [],
  accepted: [],
  forgotten: [],
  totals: new Map(),
})

const noStates = (): number[] => Object.values(stateCodes).map(() => 0)

export function addToTotal({ totals }: Changes, partner: string, state: number, n: number): void {
  const own = totals.get(partner) ?? noStates()
  totals.set(partner, own)
  own[state] = (own[state] ?? 0) + n
}

/**
 * Moves a record of a stored batch from one state to another, in the counts of the batch and in the totals of its partner. `activated` is
 * the change to the number of active records.
 */
export function move(
  changes: Changes,
  { batch, partner }: Pick<BatchRow, 'batch' | 'partner'>,
  from: number,
  to: number,
  activated: number,
): void {
  const own = changes.counts.get(batch) ?? { states: noStates(), active: 0 }
  changes.counts.set(batch, own)
  own.active += activated
  for (const [state, n] of [
    [from, -1],
    [to, 1],
  ] as const) {
    own.states[state] = (own.states[state] ?? 0) + n
    addToTotal(changes, partner, state, n)
  }
}

const MAX_REASON = 200

/**
 * Shortens a reason, which may be a code from the service, and removes or replaces the characters that PostgreSQL rejects (NUL and lone
 * surrogates).
 */
export const toReason = (reason: string | undefined): string | null =>
  reason?.replaceAll('\u0000', '').slice(0, MAX_REASON).toWellFormed() ?? null

export const isNewer = (one: RecordRef, other: RecordRef): boolean =>
  one.batch > other.batch || (one.batch === other.batch && one.position > other.position)

/** Estimated sizes in bytes of the rows of one batch, without its request, and of one record. */
const BYTES_PER_BATCH = 4_096
const BYTES_PER_RECORD = 128

export const bytesOf = ({ payload, records }: Pick<NewBatch, 'payload' | 'records'>): number =>
  BYTES_PER_BATCH + payload.byteLength + BYTES_PER_RECORD * records.length
