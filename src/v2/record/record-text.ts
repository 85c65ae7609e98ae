import { isUtf8 } from 'node:buffer'

import { AdapterError } from '../../errors.ts'
import { encodingOf, parameterOf, parseMediaType } from '../../http/media-type.ts'
import { defaultBatchLimits } from '../limits.ts'
import { decodeRecord } from './decode-record.ts'
import type { RecordFault, RecordResult } from './flat-record.ts'
import type { JsonLimits } from './json-reader.ts'

/**
 * Undefined for UTF-8, the default; `latin1`, or the name of another single-byte set in the WHATWG encoding standard; `other` cannot be
 * read (batch-wire F26).
 */
export type RecordCharset = string | undefined

const SINGLE_BYTE =
  /^(?:ibm866|iso-8859-\d+(?:-i)?|koi8-[ru]|macintosh|windows-(?:874|125\d)|x-mac-cyrillic)$/

/** The charset that a record's Content-Type names. */
export function readCharset(contentType: string | undefined): RecordCharset {
  // The media type itself is not checked: legacy clients spell application/json in several ways.
  const charset = /charset/i.test(contentType ?? '') ? parameterOfType(contentType ?? '') : undefined
  if (charset === undefined || charset === 'us-ascii') return undefined
  const name = encodingOf(charset)
  if (name === 'utf-8') return undefined
  // The standard reads ISO-8859-1 as Windows-1252, as browsers do; V2's parser reads what the name says.
  if (name === 'windows-1252' && !charset.includes('1252')) return 'latin1'
  return name !== undefined && SINGLE_BYTE.test(name) ? name : 'other'
}

/** The text of one record in its charset, or why it has none. */
export function decodeText(bytes: Buffer, charset: RecordCharset): string | RecordFault {
  if (charset === undefined) return isUtf8(bytes) ? bytes.toString('utf8') : notUtf8
  if (charset === 'latin1') return bytes.toString('latin1')
  if (charset === 'other') return unknownCharset
  try {
    return new TextDecoder(charset, { fatal: true }).decode(bytes)
  } catch {
    // A byte that the set leaves undefined: replaced, it would change a comment.
    return notInCharset
  }
}

const unknownCharset: RecordFault = {
  code: 'ADP_CHARSET',
  message: 'The charset must be utf-8 or a single-byte one, such as iso-8859-1.',
}
const notUtf8: RecordFault = { code: 'ADP_CHARSET', message: 'The record is not valid UTF-8.' }
const notInCharset: RecordFault = {
  code: 'ADP_CHARSET',
  message: 'The record is not valid in the charset of its Content-Type.',
}

/** Decodes one record from its bytes, in the charset that `contentType` names (batch-wire F26), as `decodeRecord` does. */
export function decodeRecordBytes(
  bytes: Buffer,
  contentType: string | undefined,
  limits: JsonLimits = defaultBatchLimits,
): RecordResult {
  const text = decodeText(bytes, readCharset(contentType))
  return typeof text === 'string' ? decodeRecord(text, limits) : { record: undefined, faults: [text] }
}

function parameterOfType(contentType: string): string | undefined {
  try {
    return parameterOf(parseMediaType(contentType), 'charset')?.toLowerCase()
  } catch (cause) {
    if (cause instanceof AdapterError) return 'unreadable'
    throw cause
  }
}
