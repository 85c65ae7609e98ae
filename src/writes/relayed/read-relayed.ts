import { AdapterError, errorRules } from '../../errors.ts'
import { type Slices, SLICE_WORK } from '../../http/slices.ts'
import {
  type BatchLimits,
  decodeRecordBytes,
  type FlatRecord,
  openBatchDecoding,
  readBoundary,
} from '../../v2/index.ts'
import { keyOf } from '../plan.ts'
import type { BatchIds, WriteRequest } from '../stored-request.ts'

/** A write that V2 serves, as far as the journal has to know it. */
export interface RelayedWrite {
  readonly kind: WriteRequest['kind']
  readonly body: Buffer
  /** Undefined for a write that is never recognised again. */
  readonly ids: BatchIds | undefined
  /** The key of each record; undefined where it cannot be read, which is for V2 to judge. */
  readonly keys: readonly (string | undefined)[]
  /** The attendance code of each record. */
  readonly codes: readonly (string | undefined)[]
}

/** Reads a write; undefined: this codec cannot, so V3 could never be sent it. `body` is decompressed. */
export async function readRelayed(
  request: WriteRequest,
  body: Buffer,
  limits: BatchLimits,
  slices: Slices,
): Promise<RelayedWrite | undefined> {
  const { kind, contentType, serviceHosts } = request
  try {
    if (kind === 'record') {
      const { record } = decodeRecordBytes(body, contentType, limits)
      return { kind, body, ids: undefined, keys: [toKey(record)], codes: [record?.SchoolAttendanceCode] }
    }
    const hosts = serviceHosts === undefined ? {} : { serviceHosts: new Set(serviceHosts) }
    const decoding = openBatchDecoding(body, contentType, { limits, ...hosts })
    while (!decoding.advance(SLICE_WORK)) await slices.next()
    const { boundary, changesets, parts } = decoding.batch()
    const ids = { boundary: readBoundary(contentType), envelope: [boundary, ...changesets] }
    return {
      kind,
      body,
      ids,
      keys: parts.map(({ record }) => toKey(record)),
      codes: parts.map(({ record }) => record?.SchoolAttendanceCode),
    }
  } catch (cause) {
    if (cause instanceof AdapterError && errorRules[cause.code].class === 'request') return undefined
    throw cause
  }
}

const toKey = (record: FlatRecord | undefined): string | undefined =>
  record === undefined ? undefined : keyOf(record)
