import { AdapterError, type ErrorLocation } from '../../errors.ts'
import { formatBytes } from '../../http/body.ts'
import type { BatchLimits } from '../limits.ts'

const LF = 0x0a
const CR = 0x0d
const COLON = 0x3a
const SPACE = 0x20
const TAB = 0x09

/** The header lines of one part, in order. Names are in lower case; values are trimmed and unfolded. */
export type HeaderLines = readonly (readonly [name: string, value: string])[]

interface HeaderBlock {
  readonly lines: HeaderLines
  /** The offset of the first byte after the blank line. */
  readonly end: number
  /** False if the part ends before a blank line. */
  readonly closed: boolean
}

const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/

/**
 * Reads header lines within `[from, to)` up to a blank line. Names may be in any case, spaces and tabs may follow the colon, and folded
 * lines are joined by one space (batch-wire F15; RFC 5322 2.2.3). Bytes above 0x7F are read as UTF-8. Throws `ADP_HEADER` for a malformed
 * line, a control character or a name that is not a token. Throws `ADP_LIMIT` for too many lines or bytes.
 */
export function readHeaders(
  bytes: Buffer,
  from: number,
  to: number,
  limits: BatchLimits,
  at: ErrorLocation,
): HeaderBlock {
  const lines: [string, string][] = []
  let position = from
  for (let count = 0; position < to; count += 1) {
    const { text: end, next } = lineEnd(bytes, position, to)
    if (end === position) return { lines, end: next, closed: true }
    if (next - from > limits.maxPartHeaderBytes) throw headersTooLong(limits, { ...at, offset: position })
    // Folded lines count towards the limit, because each of them is appended to the value of the line before.
    if (count === limits.maxHeaderLines) {
      const message = `${partOf(at)} exceeds the limit of ${limits.maxHeaderLines} header lines.${fateOf(at)} Send fewer headers.`
      throw new AdapterError('ADP_LIMIT', message, { at: { ...at, offset: position } })
    }
    refuseControls(bytes, position, end, at)
    const first = bytes[position]
    const last = lines.at(-1)
    if (isSpace(first)) {
      if (last === undefined) throw badLine('a folded line before any header', position, at)
      const text = textWithin(bytes, position, end)
      last[1] += last[1] === '' || text === '' ? text : ` ${text}`
    } else {
      lines.push(readLine(bytes, position, end, at))
    }
    position = next
  }
  return { lines, end: to, closed: false }
}

/** Returns the offset at which the text of a line ends, without CR, and the offset of the next line. */
export function lineEnd(bytes: Buffer, from: number, to: number): { text: number; next: number } {
  const found = bytes.indexOf(LF, from)
  if (found === -1 || found >= to) return { text: to, next: to }
  return { text: found > from && bytes[found - 1] === CR ? found - 1 : found, next: found + 1 }
}

/** Returns the values of a header in their order. `name` must be in lower case. */
export function valuesOf(lines: HeaderLines, name: string): string[] {
  return lines.filter(([own]) => own === name).map(([, value]) => value)
}

function readLine(bytes: Buffer, from: number, to: number, at: ErrorLocation): [string, string] {
  const colon = bytes.indexOf(COLON, from)
  if (colon === -1 || colon >= to) throw badLine('a line without a colon', from, at)
  const name = bytes.toString('latin1', from, colon)
  if (!NAME.test(name)) throw badLine('a header name that is not a token', from, at)
  return [name.toLowerCase(), textWithin(bytes, colon + 1, to)]
}

/** Returns the text between two offsets, without spaces and tabs at its ends. Other white space, such as no-break spaces, stays. */
function textWithin(bytes: Buffer, from: number, to: number): string {
  let [start, end] = [from, to]
  while (start < end && isSpace(bytes[start])) start += 1
  while (end > start && isSpace(bytes[end - 1])) end -= 1
  return bytes.toString('utf8', start, end)
}

function isSpace(byte: number | undefined): boolean {
  return byte === SPACE || byte === TAB
}

function refuseControls(bytes: Buffer, from: number, to: number, at: ErrorLocation): void {
  for (let position = from; position < to; position += 1) {
    const byte = bytes[position] ?? 0
    if ((byte < SPACE && byte !== TAB) || byte === 0x7f) throw badLine('a control character', position, at)
  }
}

function badLine(what: string, offset: number, at: ErrorLocation): AdapterError {
  return new AdapterError(
    'ADP_HEADER',
    `The headers of a part have ${what}.${fateOf(at)} Send lines of the form "Name: value", then a blank line, then the content.`,
    { at: { ...at, offset } },
  )
}

export function headersTooLong(limits: BatchLimits, at: ErrorLocation): AdapterError {
  const limit = formatBytes(limits.maxPartHeaderBytes)
  return new AdapterError(
    'ADP_LIMIT',
    `${partOf(at)} has headers of more than ${limit}.${fateOf(at)} Send shorter headers.`,
    {
      at,
    },
  )
}

/** Returns the subject of a sentence about a part, such as `Part 3`. */
export function partOf({ part }: ErrorLocation): string {
  return part === undefined ? 'A part' : `Part ${part}`
}

/** Returns the sentence of a message that says what happened to the records. Empty in a reply, in which `at` has no part number. */
function fateOf({ part }: ErrorLocation): string {
  return part === undefined ? '' : ' Nothing was posted.'
}
