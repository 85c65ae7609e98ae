import type { NewBatch, RecordRef } from '../journal.ts'
import { stateCodes } from '../lifecycle.ts'
import type { SealedFor } from '../seal.ts'

/** What all changes of one transaction are made with. */
export interface ChangeContext {
  readonly instance: number
  /** Milliseconds since the epoch. */
  readonly nowMs: number
  readonly replayForMs: number
  readonly ageMs: number
  /** Batches that began at a later age are recognised whatever the wall clock says. */
  readonly forgottenAgeMs: number
  /** True: credentials can be encrypted, and are kept. */
  readonly hasKey: boolean
  readonly changes: Changes
}

/** A batch that is settled, opened again or forgotten. */
export interface BatchRow {
  readonly batch: number
  readonly partner: string
  readonly owner: string
  /** The instance that owns it. */
  readonly instance: number
  readonly open: number
  readonly onV2: number
  /** 1 while its credentials were not accepted. */
  readonly newcomer: number
  /** The batches that it retires then; JSON. */
  readonly retires: string
}

/** A record of a batch that is opened again, forgotten or replaced. */
export interface RecordRow {
  readonly position: number
  readonly state: number
  readonly active: number
  readonly superseded: number
  readonly reason: string | null
  readonly key: string
}

/** A batch with all its records, in their order. */
export interface BatchRows {
  readonly batch: BatchRow
  readonly records: readonly RecordRow[]
}

/** The nearest record of each key that has one. */
export type ByKey = ReadonlyMap<string, RecordRef>

/** The outcome of a record, as it is written. */
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

/** A blob to be encrypted and written; credentials replace those that are there. */
export interface Blob extends SealedFor {
  readonly plain: Uint8Array
}

/** The rows that a transaction writes. */
export interface Changes {
  /** The columns of new batches, as `insertBatches` of sql.ts takes them. */
  readonly batches: Readonly<Record<string, string | number | null>>[]
  /** The keys of the records of new batches, all of them open. */
  readonly records: { readonly batch: number; readonly keys: readonly string[] }[]
  readonly blobs: Blob[]
  readonly outcomes: OutcomeRow[]
  /** Positions of active records that are open again, by batch. */
  readonly reopened: Map<number, readonly number[]>
  /** What is added to the numbers of open and of active records, by batch. */
  readonly counts: Map<number, { open: number; active: number }>
  readonly retired: number[]
  /** Their credentials were accepted. */
  readonly accepted: number[]
  /** Deleted with all that is kept of them. */
  readonly forgotten: number[]
  /** What is added to the totals of a partner, by the codes of the states. */
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

/** `n` records of a partner came into state `to`, from state `from` or as new ones. */
export function move(
  { totals }: Changes,
  partner: string,
  from: number | undefined,
  to: number,
  n = 1,
): void {
  const own = totals.get(partner) ?? Object.values(stateCodes).map(() => 0)
  totals.set(partner, own)
  if (from !== undefined) own[from] = (own[from] ?? 0) - n
  own[to] = (own[to] ?? 0) + n
}

/** Adds to the numbers of open and of active records of a batch. */
export function count({ counts }: Changes, batch: number, open: number, active: number): void {
  const own = counts.get(batch) ?? { open: 0, active: 0 }
  counts.set(batch, { open: own.open + open, active: own.active + active })
}

const MAX_REASON = 200

/** A reason may be a code of the service: PostgreSQL takes neither a zero character nor half of a pair. */
export const toReason = (reason: string | undefined): string | null =>
  reason?.replaceAll('\u0000', '').slice(0, MAX_REASON).toWellFormed() ?? null

export const isNewer = (one: RecordRef, other: RecordRef): boolean =>
  one.batch > other.batch || (one.batch === other.batch && one.position > other.position)

/** Rows of a batch and of a record, beside the request. */
const BYTES_PER_BATCH = 4_096
const BYTES_PER_RECORD = 128

/** What a batch counts with. */
export const bytesOf = ({ payload, records }: Pick<NewBatch, 'payload' | 'records'>): number =>
  BYTES_PER_BATCH + payload.byteLength + BYTES_PER_RECORD * records.length
