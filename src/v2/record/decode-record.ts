import { isUtf8 } from 'node:buffer'
import { AdapterError } from '../../errors.ts'
import { encodingOf, parameterOf, parseMediaType } from '../../http/media-type.ts'
import { isGuid } from '../../odata/index.ts'
import { defaultBatchLimits } from '../limits.ts'
import { type JsonFault, type JsonLimits, JsonReader } from './json-reader.ts'

/** The value of `@odata.type` in a flat record (service.md 4.2). */
export const FLAT_TYPE = '#AttendanceService.Models.OData.AttendanceRecord'

/** A member of a posted record that the flat write form does not have. `raw` is the JSON text of its value, with unchanged numbers. */
export interface UnmappedField {
  readonly name: string
  readonly raw: string
}

/** A flat V2 record as a client posts it (service.md 4.2). A missing member is `undefined`, not null. Guids have 36 characters. */
export interface FlatRecord {
  readonly Present: boolean
  readonly Absent: boolean
  readonly Learner: string
  readonly AttendableEvent: string
  readonly SchoolAttendanceCode: string
  readonly MinutesLate: number | null | undefined
  readonly Comment: string | null | undefined
  readonly unmapped: readonly UnmappedField[] | undefined
  /** The number of values in a form that only V2's parser reads, such as `"True"` for a boolean, or `undefined` if there are none. */
  readonly converted?: number | undefined
}

export interface RecordFault {
  readonly code:
    'ADP_JSON' | 'ADP_CHARSET' | 'ADP_FIELD' | 'ADP_UNMAPPED_FIELD' | 'ADP_METHOD' | 'ADP_RECORD_LIMIT'
  /** The message names the member and the rule, never the value. */
  readonly message: string
}

/** The second sentence in the message of every fault, which says what happened to the record. */
export const NOT_POSTED = 'The record was not posted.'

export type RecordResult =
  | { readonly record: FlatRecord; readonly faults: undefined }
  | { readonly record: undefined; readonly faults: readonly RecordFault[] }

const COLON = 0x3a
const COMMA = 0x2c
const OPEN = 0x7b
const CLOSE = 0x7d
const GUID_LENGTH = 36
const QUOTED_TYPE = `"${FLAT_TYPE}"`
const INT32 = /^-?\d{1,10}$/
// These patterns match the texts that V2's parser accepts for each type, after white space at the ends was removed. The parser uses .NET's
// Guid, Boolean.Parse and Int32.Parse.
const ENCLOSED = /^(?:\{.{36}\}|\(.{36}\))$/
const GUID_DIGITS = /^([0-9a-f]{8})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{12})$/i
const BOOLEAN_TEXT = /^(?:(true)|false)$/i
const INT32_TEXT = /^[+-]?\d+$/

/** Assigns a bit to each member of the write form. A set bit means that the member is present. */
const FIELDS: ReadonlyMap<string, number> = new Map([
  ['Present', 1],
  ['Absent', 2],
  ['Learner', 4],
  ['AttendableEvent', 8],
  ['SchoolAttendanceCode', 16],
  ['MinutesLate', 32],
  ['Comment', 64],
  ['@odata.type', 128],
])
const REQUIRED = ['Present', 'Absent', 'Learner', 'AttendableEvent', 'SchoolAttendanceCode'] as const

interface Draft {
  Present: boolean
  Absent: boolean
  Learner: string
  AttendableEvent: string
  SchoolAttendanceCode: string
  MinutesLate: number | null | undefined
  Comment: string | null | undefined
  unmapped: UnmappedField[] | undefined
  converted: number | undefined
}

/**
 * Decodes one flat record from JSON text (batch-wire 4, F20, F23, F30). Never throws, because the other records of the batch proceed.
 * Reports all faulty fields of the record together. Broken JSON, or a record above `limits`, ends the decoding and is then the only fault.
 */
export function decodeRecord(text: string, limits: JsonLimits = defaultBatchLimits): RecordResult {
  const reader = new JsonReader(text, limits)
  const draft: Draft = {
    Present: false,
    Absent: false,
    Learner: '',
    AttendableEvent: '',
    SchoolAttendanceCode: '',
    MinutesLate: undefined,
    Comment: undefined,
    unmapped: undefined,
    converted: undefined,
  }
  const faults: RecordFault[] = []
  const present = readMembers(reader, draft, faults)
  if (reader.fault !== undefined) return { record: undefined, faults: [faultOf(reader.fault)] }
  for (const name of REQUIRED) {
    if ((present & (FIELDS.get(name) ?? 0)) === 0) faults.push(fieldFault(name, 'is required'))
  }
  return faults.length > 0 ? { record: undefined, faults } : { record: draft, faults: undefined }
}

/** Reads all members into `draft` and returns the bits of the members that are present. A fault of the JSON is stored in the reader. */
function readMembers(reader: JsonReader, draft: Draft, faults: RecordFault[]): number {
  let present = 0
  let others: Set<string> | undefined
  let open = Number.isNaN(reader.peek())
    ? reader.fail('the body is empty')
    : reader.take(OPEN) || reader.fail('the body is not an object')
  if (open && reader.take(CLOSE)) open = false
  while (open) {
    if (!reader.countMember()) break
    const name = reader.readString()
    if (name === undefined) break
    const bit = FIELDS.get(name) ?? 0
    if (bit === 0) others ??= new Set()
    if ((present & bit) !== 0 || others?.has(name) === true) reader.fail('a name occurs twice')
    if (bit === 0) others?.add(name)
    present |= bit
    if (!reader.take(COLON)) reader.fail('a colon is expected')
    readMember(reader, name, draft, faults)
    if (reader.fault !== undefined) break
    open = reader.take(COMMA)
    if (!open && !reader.take(CLOSE)) reader.fail('a comma or the end of the object is expected')
  }
  if (!Number.isNaN(reader.peek())) reader.fail('text follows the object')
  return present
}

function readMember(reader: JsonReader, name: string, draft: Draft, faults: RecordFault[]): void {
  switch (name) {
    // Each field is assigned by its written name, because an assignment by a computed name is slow.
    case 'Learner':
      draft.Learner = readGuid(reader, name, draft, faults)
      return
    case 'AttendableEvent':
      draft.AttendableEvent = readGuid(reader, name, draft, faults)
      return
    case 'SchoolAttendanceCode':
      draft.SchoolAttendanceCode = readGuid(reader, name, draft, faults)
      return
    case 'Present':
      draft.Present = readBoolean(reader, name, draft, faults)
      return
    case 'Absent':
      draft.Absent = readBoolean(reader, name, draft, faults)
      return
    case 'MinutesLate':
      draft.MinutesLate = readMinutes(reader, draft, faults)
      return
    case 'Comment':
      if (reader.takeWord('null')) draft.Comment = null
      else if (reader.atString()) draft.Comment = reader.readString()
      else refuse(reader, name, 'must be a string or null', faults)
      return
    default: {
      if (name === '@odata.type' && reader.takeWord(QUOTED_TYPE)) return
      const raw = reader.readRaw()
      if (raw === undefined || (name === '@odata.type' && raw.slice(1, -1) === FLAT_TYPE)) return
      draft.unmapped ??= []
      draft.unmapped.push({ name, raw })
    }
  }
}

function readBoolean(reader: JsonReader, name: string, draft: Draft, faults: RecordFault[]): boolean {
  if (reader.takeWord('true')) return true
  if (reader.takeWord('false')) return false
  const match = reader.atString() ? BOOLEAN_TEXT.exec((reader.readString() ?? '').trim()) : undefined
  if (match === undefined) refuse(reader, name, 'must be true or false', faults)
  else if (match === null) faults.push(fieldFault(name, 'must be true or false'))
  else countConverted(draft)
  return match?.[1] !== undefined
}

function readGuid(reader: JsonReader, name: string, draft: Draft, faults: RecordFault[]): string {
  const plain = reader.peekQuoted(GUID_LENGTH)
  if (plain !== undefined && isGuid(plain)) {
    reader.position += GUID_LENGTH + 2
    return plain
  }
  if (!reader.atString()) {
    refuse(reader, name, 'must be a guid', faults)
    return ''
  }
  const text = reader.readString() ?? ''
  if (isGuid(text)) return text
  const guid = parseGuidText(text)
  if (guid === undefined) faults.push(fieldFault(name, 'must be a guid'))
  else countConverted(draft)
  return guid ?? ''
}

/** Parses a guid of 32 digits without hyphens, or with hyphens and optionally in braces or parentheses. Otherwise returns `undefined`. */
function parseGuidText(text: string): string | undefined {
  const trimmed = text.trim()
  const plain = ENCLOSED.test(trimmed) ? trimmed.slice(1, -1) : trimmed
  if (isGuid(plain)) return plain
  return GUID_DIGITS.exec(plain)?.slice(1).join('-')
}

function readMinutes(reader: JsonReader, draft: Draft, faults: RecordFault[]): number | null {
  if (reader.takeWord('null')) return null
  const isText = reader.atString()
  const raw = isText ? reader.readString()?.trim() : reader.readRaw()
  if (raw === undefined) return null
  const minutes = Number(raw)
  if ((isText ? INT32_TEXT : INT32).test(raw) && minutes === (minutes | 0)) {
    if (isText) countConverted(draft)
    return minutes | 0
  }
  faults.push(fieldFault('MinutesLate', 'must be an int32 or null'))
  return null
}

function countConverted(draft: Draft): void {
  draft.converted = (draft.converted ?? 0) + 1
}

/** Skips a value of the wrong type and adds a fault. If the value is not JSON, adds no fault, because the reader has stored one. */
function refuse(reader: JsonReader, name: string, rule: string, faults: RecordFault[]): void {
  if (reader.readRaw() !== undefined) faults.push(fieldFault(name, rule))
}

function fieldFault(name: string, rule: string): RecordFault {
  return { code: 'ADP_FIELD', message: `${name} ${rule}. ${NOT_POSTED} Correct the field.` }
}

function faultOf({ message, isLimit, position }: JsonFault): RecordFault {
  if (isLimit === true)
    return { code: 'ADP_RECORD_LIMIT', message: `${message}. ${NOT_POSTED} Send a shorter record.` }
  const what = `The record is not a JSON object: ${message} (character ${position}).`
  return { code: 'ADP_JSON', message: `${what} ${NOT_POSTED} Send one JSON object.` }
}

/**
 * The charset of a record (batch-wire F26): `undefined` for UTF-8, `other` if it is not supported, or the name of a single-byte charset.
 */
export type RecordCharset = string | undefined

const SINGLE_BYTE =
  /^(?:ibm866|iso-8859-\d+(?:-i)?|koi8-[ru]|macintosh|windows-(?:874|125\d)|x-mac-cyrillic)$/

export function readCharset(contentType: string | undefined): RecordCharset {
  // Reads only the charset. Does not check the media type, because legacy clients spell application/json in several ways.
  const charset = /charset/i.test(contentType ?? '') ? parameterOfType(contentType ?? '') : undefined
  if (charset === undefined || charset === 'us-ascii') return undefined
  const name = encodingOf(charset)
  if (name === 'utf-8') return undefined
  // The WHATWG standard treats the label ISO-8859-1 as Windows-1252. V2's parser does not, so the record is decoded as real ISO-8859-1.
  if (name === 'windows-1252' && !charset.includes('1252')) return 'latin1'
  return name !== undefined && SINGLE_BYTE.test(name) ? name : 'other'
}

export function decodeText(bytes: Buffer, charset: RecordCharset): string | RecordFault {
  if (charset === undefined) return isUtf8(bytes) ? bytes.toString('utf8') : notUtf8
  if (charset === 'latin1') return bytes.toString('latin1')
  if (charset === 'other') return unknownCharset
  try {
    return new TextDecoder(charset, { fatal: true }).decode(bytes)
  } catch {
    // Refuses a record with a byte that the charset does not define, because a replacement character would change a comment.
    return notInCharset
  }
}

const unknownCharset: RecordFault = {
  code: 'ADP_CHARSET',
  message: `The charset must be UTF-8 or a single-byte charset such as ISO-8859-1. ${NOT_POSTED} Encode the record in UTF-8.`,
}
const notUtf8: RecordFault = {
  code: 'ADP_CHARSET',
  message: `The record is not valid UTF-8. ${NOT_POSTED} Encode the record in UTF-8.`,
}
const notInCharset: RecordFault = {
  code: 'ADP_CHARSET',
  message: `The record is not valid in the charset of its Content-Type. ${NOT_POSTED} Encode the record in that charset.`,
}

/** Decodes one flat record from bytes in the charset that `contentType` names (batch-wire F26). In all else it works as `decodeRecord`. */
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
