import type { Preferences } from '../http-part/preferences.ts'
import type { FlatRecord, RecordFault } from '../record/flat-record.ts'

/** One part of a decoded batch: a record, or the faults for which it cannot be posted. */
export interface BatchPart extends Preferences {
  /** Position in the batch, from 1: the reply has its parts in this order. */
  readonly part: number
  /** Position of its changeset, from 1; undefined for a part directly under the batch (batch-wire F10). */
  readonly changeset: number | undefined
  readonly contentId: string | undefined
  /** True if the Content-ID was among the HTTP headers; the reply puts it there, too (batch-wire A3). */
  readonly contentIdInHttp: boolean
  /** The record; undefined exactly when `faults` is defined. */
  readonly record: FlatRecord | undefined
  readonly faults: readonly RecordFault[] | undefined
  /** Byte offsets `[start, end)` of the JSON in the body. */
  readonly start: number
  readonly end: number
}

/** A decoded `$batch` request: its envelope is complete, so its records may be posted. */
export interface Batch {
  /** The boundary that frames the body. */
  readonly boundary: string
  /** The boundary of each changeset, in order. */
  readonly changesets: readonly string[]
  /** False when the ids of header and body differ: the answer is a single 200 (batch-wire 3). */
  readonly idsAgree: boolean
  readonly parts: readonly BatchPart[]
}
