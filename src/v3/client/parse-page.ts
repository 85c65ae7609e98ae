import { parseJson } from '../outcome.ts'

/** A smaller text is parsed at once, whatever it holds. */
const SMALL_BYTES = 65_536
/** So is one with no more brackets and commas, those in its strings included: a page of 1,000 marks. */
const SMALL_NODES = 32_768
/**
 * How many brackets and commas a text may have: a recorded mark has about twenty, and each may take up to a microsecond, where
 * every member has a name of its own, and a hundred bytes of memory. A page of 1,000 marks has 20,000.
 */
const MAX_NODES = 131_072
const MAX_ROW_NODES = 4_096
const MAX_ENVELOPE_NODES = 16_384
/** The service's pages have 1,000 rows. */
const MAX_ROWS = 20_000
/**
 * About how many bytes of rows are parsed at once. V8 allocates everything that it parses from a text over 100 KB in its old
 * generation, which it collects rarely.
 */
const PIECE_BYTES = 65_536
/** Bytes that are parsed, and that are searched, in one turn of the event loop. */
const GROUP_NODES = 8_192
const GROUP_BYTES = 262_144
const SEARCHED_BYTES = 524_288

const [QUOTE, COMMA, OPEN_LIST, BACKSLASH, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [
  0x22, 0x2c, 0x5b, 0x5c, 0x5d, 0x7b, 0x7d,
]
const VALUE = Buffer.from('"value"')
const ROWS_START = Buffer.from('"value":[')
const ROWS_END = Buffer.from('}]')
const BETWEEN_ROWS = Buffer.from('},{"')
const BOM = Buffer.from('\ufeff')

/**
 * Parses the JSON of a reply to a read; undefined where it is none, or holds more than any page does. `later` runs work in a turn
 * of the event loop of its own; without it nothing waits.
 */
export function parsePage(body: Buffer, later?: (act: () => void) => void): Promise<unknown> {
  const isSmall = body.length <= SMALL_BYTES || hasFewNodes(body)
  if (!isSmall) return parseInGroups(body, later)
  const inPieces = body.length > PIECE_BYTES ? parseInPieces(body) : undefined
  return Promise.resolve(inPieces ?? parseJson(body.toString('utf8')))
}

/**
 * `JSON.parse` for a compact text of which the rows of `value` are parsed in pieces; undefined where it cannot be cut. A cut is only
 * a guess: it may lie in a string or within a row. But then neither side of it is a list of values, and where both are, so is the
 * whole, of the values of both.
 */
function parseInPieces(bytes: Buffer): unknown {
  const start = bytes.indexOf(ROWS_START) + ROWS_START.length
  const end = bytes.lastIndexOf(ROWS_END) + 1
  if (start < ROWS_START.length || end <= start) return undefined
  const tail = bytes.toString('utf8', end)
  // A later member of the same name, however its name is written, would count in place of the rows.
  if (tail.includes('"value"') || tail.includes('\\')) return undefined
  const envelope = parseJson(bytes.toString('utf8', 0, start) + tail)
  if (typeof envelope !== 'object' || envelope === null) return undefined
  if (!('value' in envelope) || !isEmptyList(envelope.value)) return undefined
  const rows: unknown[] = []
  for (let from = start, to = end; from < end; from = to + 1) {
    const cut = bytes.indexOf(BETWEEN_ROWS, from + PIECE_BYTES)
    to = cut === -1 || cut >= end ? end : cut + 1
    const piece = parseJson(`[${bytes.toString('utf8', from, to)}]`)
    if (!Array.isArray(piece)) return undefined
    for (const row of piece) rows.push(row)
  }
  return { ...envelope, value: rows }
}

/** Parses a large collection in groups of rows, one in a turn of the event loop. As `parsePage`, whatever its size. */
export async function parseInGroups(body: Buffer, later?: (act: () => void) => void): Promise<unknown> {
  const steps = parseInSteps(body)
  for (;;) {
    const step = steps.next()
    if (step.done === true) return step.value
    if (later !== undefined) await new Promise<void>(later)
  }
}

/** 1 for each byte that may be the bracket that opens a value, or the comma before one. */
const NODE_BYTES = new Uint8Array(256)
for (const byte of [COMMA, OPEN_LIST, OPEN_OBJECT]) NODE_BYTES[byte] = 1

/** True where a text can hold no more than `SMALL_NODES` values; without a branch for each byte, every page pays for it. */
function hasFewNodes(bytes: Buffer): boolean {
  let nodes = 0
  for (let from = 0; from < bytes.length && nodes <= SMALL_NODES; from += SMALL_BYTES) {
    const to = Math.min(from + SMALL_BYTES, bytes.length)
    for (let at = from; at < to; at += 1) nodes += NODE_BYTES[bytes[at] ?? 0] ?? 0
  }
  return nodes <= SMALL_NODES
}

/** `JSON.parse` for a text of which the rows of `value` are parsed in groups; yields between them. */
function* parseInSteps(bytes: Buffer): Generator<void, unknown> {
  const from = bytes.subarray(0, BOM.length).equals(BOM) ? BOM.length : 0
  const rows: unknown[] = []
  /** Where the list of rows begins and ends, without its brackets. */
  let list: { readonly start: number; end: number | undefined } | undefined
  let depth = 0
  let [nodes, rowNodes, groupNodes, envelopeNodes] = [0, 0, 0, 0]
  let group = { start: 0, rows: 0 }
  const isInList = (): boolean => list !== undefined && list.end === undefined
  const parseGroup = (end: number): boolean => {
    const parsed = parseJson(`[${bytes.toString('utf8', group.start, end)}]`)
    if (!Array.isArray(parsed) || parsed.length !== group.rows) return false
    for (const row of parsed) rows.push(row)
    group = { start: end + 1, rows: 0 }
    groupNodes = 0
    return true
  }
  let pauseAt = from + SEARCHED_BYTES
  for (let at = from; at < bytes.length; at += 1) {
    if (at >= pauseAt) {
      pauseAt = at + SEARCHED_BYTES
      yield
    }
    const byte = bytes[at] ?? 0
    if (byte === QUOTE) {
      at = endOfString(bytes, at)
      continue
    }
    const opens = byte === OPEN_LIST || byte === OPEN_OBJECT
    const closes = byte === CLOSE_LIST || byte === CLOSE_OBJECT
    if (!opens && !closes && byte !== COMMA) continue
    if (!closes) nodes += 1
    if (nodes > MAX_NODES) return undefined
    const isOfList = depth === 2 && isInList()
    if (isOfList && byte === CLOSE_LIST) {
      const isEmpty = rows.length === 0 && group.rows === 0 && isBlank(bytes, group.start, at)
      group.rows += isEmpty ? 0 : 1
      if (!parseGroup(at)) return undefined
      list = { start: list?.start ?? 0, end: at }
      yield
    } else if (isOfList && byte === COMMA) {
      group.rows += 1
      rowNodes = 0
      if (rows.length + group.rows > MAX_ROWS) return undefined
      if (groupNodes >= GROUP_NODES || at - group.start >= GROUP_BYTES) {
        if (!parseGroup(at)) return undefined
        yield
      }
    } else if (isInList()) {
      rowNodes += 1
      groupNodes += 1
      if (rowNodes > MAX_ROW_NODES) return undefined
    } else {
      envelopeNodes += 1
      if (envelopeNodes > MAX_ENVELOPE_NODES) return undefined
    }
    if (depth === 1 && byte === OPEN_LIST && isAfterValue(bytes, at)) {
      // A repeated member is ambiguous.
      if (list !== undefined) return undefined
      list = { start: at + 1, end: undefined }
      group = { start: at + 1, rows: 0 }
    }
    if (opens) depth += 1
    else if (closes) depth -= 1
  }
  if (list === undefined) return parseJson(bytes.toString('utf8'))
  if (list.end === undefined) return undefined
  const envelope = parseJson(bytes.toString('utf8', from, list.start) + bytes.toString('utf8', list.end))
  if (typeof envelope !== 'object' || envelope === null) return undefined
  // A later member of the same name counts, as for JSON.parse.
  return 'value' in envelope && isEmptyList(envelope.value) ? { ...envelope, value: rows } : envelope
}

const isEmptyList = (value: unknown): boolean => Array.isArray(value) && value.length === 0

/** The offset of the quote that ends a string; the end of the bytes where there is none. */
function endOfString(bytes: Buffer, start: number): number {
  for (let at = start + 1; at < bytes.length; at += 1) {
    const byte = bytes[at]
    if (byte === QUOTE) return at
    if (byte === BACKSLASH) at += 1
  }
  return bytes.length
}

/** True where the list at an offset is the value of a member `value`. */
function isAfterValue(bytes: Buffer, list: number): boolean {
  const colon = skipBlanksBefore(bytes, list)
  if (bytes[colon - 1] !== 0x3a) return false
  const end = skipBlanksBefore(bytes, colon - 1)
  const start = end - VALUE.length
  return (
    start > 0 && bytes.compare(VALUE, 0, VALUE.length, start, end) === 0 && bytes[start - 1] !== BACKSLASH
  )
}

/** The offset after the last non-blank byte before `end`. */
function skipBlanksBefore(bytes: Buffer, end: number): number {
  let at = end
  while (at > 0 && isBlankByte(bytes[at - 1])) at -= 1
  return at
}

const isBlank = (bytes: Buffer, from: number, to: number): boolean => skipBlanksBefore(bytes, to) <= from

const isBlankByte = (byte: number | undefined): boolean =>
  byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09
