import type { Preferences } from '../http-part/head.ts'
import type { FlatRecord, RecordFault } from '../record/decode-record.ts'

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

const GUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/i

/**
 * The id rule (service.md 4.2, last paragraph; batch-wire 3): the header's boundary is one of the delimiters of the body,
 * or its guid is the guid of the batch or of a changeset.
 */
export function idsAgree(headerBoundary: string, delimiters: readonly string[]): boolean {
  const id = guidOf(headerBoundary)
  return delimiters.some((own) => own === headerBoundary || (id !== undefined && guidOf(own) === id))
}

function guidOf(boundary: string): string | undefined {
  return GUID.exec(boundary)?.[0].toLowerCase()
}

/** The decoded path of the V2 batch write, under any prefix and in any case. */
export const batchPath = /\/v2\/attendance\/\$batch\/?$/i
