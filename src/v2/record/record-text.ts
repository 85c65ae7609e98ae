import { isUtf8 } from 'node:buffer'

import { AdapterError } from '../../errors.ts'
import { parameterOf, parseMediaType } from '../../http/media-type.ts'
import { defaultBatchLimits } from '../limits.ts'
import { decodeRecord } from './decode-record.ts'
import type { RecordFault, RecordResult } from './flat-record.ts'
import type { JsonLimits } from './json-reader.ts'

/** Undefined for UTF-8, the default; `latin1` for `charset=iso-8859-1`; `other` cannot be read (batch-wire F26). */
export type RecordCharset = 'latin1' | 'other' | undefined

/** The charset that a record's Content-Type names. */
export function readCharset(contentType: string | undefined): RecordCharset {
  // The media type itself is not checked: legacy clients spell application/json in several ways.
  const charset = /charset/i.test(contentType ?? '') ? parameterOfType(contentType ?? '') : undefined
  if (charset === undefined || charset === 'utf-8' || charset === 'utf8' || charset === 'us-ascii')
    return undefined
  return charset === 'iso-8859-1' || charset === 'latin1' ? 'latin1' : 'other'
}

/** The fault of a record in an unsupported charset. */
export const unknownCharset: RecordFault = {
  code: 'ADP_CHARSET',
  message: 'The charset must be utf-8 or iso-8859-1.',
}
/** The fault of a record that is not in its declared charset. */
export const notUtf8: RecordFault = { code: 'ADP_CHARSET', message: 'The record is not valid UTF-8.' }

/** Decodes one record from its bytes, in the charset that `contentType` names (batch-wire F26), as `decodeRecord` does. */
export function decodeRecordBytes(
  bytes: Buffer,
  contentType: string | undefined,
  limits: JsonLimits = defaultBatchLimits,
): RecordResult {
  const charset = readCharset(contentType)
  if (charset === 'latin1') return decodeRecord(bytes.toString('latin1'), limits)
  if (charset === undefined && isUtf8(bytes)) return decodeRecord(bytes.toString('utf8'), limits)
  return { record: undefined, faults: [charset === 'other' ? unknownCharset : notUtf8] }
}

function parameterOfType(contentType: string): string | undefined {
  try {
    return parameterOf(parseMediaType(contentType), 'charset')?.toLowerCase()
  } catch (cause) {
    if (cause instanceof AdapterError) return 'unreadable'
    throw cause
  }
}
