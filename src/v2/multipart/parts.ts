import { type MediaType, parseMediaType } from '../../http/media-type.ts'
import { AdapterError, type ErrorLocation } from '../../errors.ts'
import type { Steps } from '../../http/slices.ts'

// Matches a boundary without quotes: the characters that RFC 2046 5.1.1 calls bchars, without a space at the end.
const BOUNDARY = /^[0-9A-Za-z'()+_,\-./:=? ]{0,69}[0-9A-Za-z'()+_,\-./:=?]$/

// Matches a boundary in quotes. COM and Delphi programs quote guids in braces, and .NET reads any quoted text (batch-wire F31).
const QUOTED_BOUNDARY = /^[ -~]{0,199}[!-~]$/

/** Returns true for text that may be a boundary: 1 to 200 printable ASCII characters without a space at the end. */
export function isBoundary(text: string): boolean {
  return QUOTED_BOUNDARY.test(text)
}

/**
 * Returns the boundary in a `Content-Type` of `multipart/mixed` (batch-wire F5 to F7). Throws `ADP_MEDIA_TYPE` for any other media type,
 * and `ADP_BOUNDARY` if the boundary is missing, repeated, empty, too long or malformed.
 */
export function readBoundary(contentType: string | undefined, at: ErrorLocation = {}): string {
  if (contentType === undefined || contentType.trim() === '') {
    throw new AdapterError(
      'ADP_MEDIA_TYPE',
      'The Content-Type is missing. Nothing was posted. Send Content-Type: multipart/mixed; boundary=<boundary>.',
      { at },
    )
  }
  const media = parseHeader(contentType, at)
  if (media.type !== 'multipart/mixed') {
    throw otherType(at)
  }
  return boundaryOf(media, at)
}

function otherType(at: ErrorLocation, cause?: unknown): AdapterError {
  const message =
    'The Content-Type of the batch is not multipart/mixed. Nothing was posted. Send Content-Type: multipart/mixed; boundary=<boundary>.'
  return new AdapterError('ADP_MEDIA_TYPE', message, { at, cause })
}

/** Returns the boundary among the parameters of a media type. Throws `ADP_BOUNDARY` as `readBoundary` does. */
export function boundaryOf(media: MediaType, at: ErrorLocation): string {
  const [first, ...others] = media.parameters.filter(([name]) => name === 'boundary')
  if (first === undefined) throw fault('has no boundary parameter', at)
  if (others.length > 0) throw fault('has two boundary parameters', at)
  const [, boundary, isQuoted] = first
  if (boundary === '') throw fault('has an empty boundary', at)
  if (!(isQuoted ? QUOTED_BOUNDARY : BOUNDARY).test(boundary))
    throw fault('has a boundary that RFC 2046 5.1.1 does not allow', at)
  return boundary
}

function parseHeader(contentType: string, at: ErrorLocation): MediaType {
  try {
    return parseMediaType(contentType)
  } catch (cause) {
    // A list of media types is not multipart/mixed, even if its last entry is (batch-wire F7).
    if (!/^\s*multipart\/mixed\s*(?:;|$)/i.test(contentType)) throw otherType(at, cause)
    // Every fault of a boundary parameter has the same code (batch-wire F6).
    if (/boundary/i.test(contentType)) throw fault('cannot be read', at, cause)
    throw cause
  }
}

function fault(what: string, at: ErrorLocation, cause?: unknown): AdapterError {
  return new AdapterError(
    'ADP_BOUNDARY',
    `The multipart Content-Type ${what}. Nothing was posted. Send one boundary of 1 to 70 characters, or up to 200 in quotes.`,
    {
      at,
      cause,
    },
  )
}

/** The bytes of a part, headers and content together, as offsets `[start, end)` into the body. */
export interface PartRange {
  readonly start: number
  readonly end: number
}

interface SplitOptions {
  readonly maxPadding: number
  readonly near?: NearDelimiters
  readonly at: ErrorLocation
}

/**
 * Yields the parts of one multipart body within `[from, to)`, and between the parts the work of the search, in bytes. Skips the text before
 * the first and after the last delimiter (batch-wire F3). A body that is closed at once, or whose only part has nothing but white space,
 * yields no part (F11). Throws `ADP_TRUNCATED` if the body has no delimiter or no closing delimiter (F8). This fault is found only at the
 * end, so the caller must not act on a part before the iteration ends.
 */
export function* splitParts(
  bytes: Buffer,
  boundary: string,
  from: number,
  to: number,
  options: SplitOptions,
): Generator<PartRange | number, void> {
  const find = createDelimiterFinder(bytes, boundary, options.maxPadding, options.near)
  let open = yield* find(from, to)
  if (open === undefined) throw truncated('no delimiter of its boundary', from, options.at)
  for (let count = 0; !open.closing; count += 1) {
    const next: Delimiter | undefined = yield* find(open.end, to)
    if (next === undefined) throw truncated('no closing delimiter', to, options.at)
    const part = { start: open.end, end: contentEnd(bytes, open.end, next.start) }
    const emptyBody = count === 0 && next.closing && (yield* isWhiteSpace(bytes, part))
    if (!emptyBody) yield part
    open = next
  }
}

export function* isWhiteSpace(bytes: Buffer, { start, end }: PartRange): Steps<boolean> {
  for (let at = start; at < end; at += 1) {
    if ((at - start) % STEP_BYTES === STEP_BYTES - 1) yield STEP_BYTES
    const byte = bytes[at]
    if (byte !== 0x0a && byte !== 0x0d && byte !== 0x20 && byte !== 0x09) return false
  }
  return true
}

function truncated(what: string, offset: number, at: ErrorLocation): AdapterError {
  const where = at.changeset === undefined ? 'batch' : 'changeset'
  return new AdapterError(
    'ADP_TRUNCATED',
    `The ${where} has ${what}. It is truncated, or has another boundary. Nothing was posted. Send the whole batch.`,
    { at: { ...at, offset } },
  )
}

const LF = 0x0a
const CR = 0x0d
const DASH = 0x2d
const SPACE = 0x20
const TAB = 0x09

const STEP_BYTES = 131_072
const STEP_LINES = 1_024
/** The fixed cost of examining one line, in the units of `Slices.spend`: the number of bytes that take the same time to decode. */
const LINE_WORK = 64

/** Returns the offset of `needle` within `[from, to)`, or -1. Yields the work of each step but the last, which the caller must count. */
export function* searchInSteps(bytes: Buffer, needle: Buffer, from: number, to: number): Steps<number> {
  for (let at = from; at < to; at += STEP_BYTES) {
    if (at > from) yield STEP_BYTES
    const found = bytes.subarray(at, Math.min(at + STEP_BYTES, to) + needle.length - 1).indexOf(needle)
    if (found !== -1) return at + found
  }
  return -1
}

/** A delimiter line, as offsets into the body. */
export interface Delimiter {
  /** The offset of the first dash. */
  readonly start: number
  /** The offset of the first byte after the line end. */
  readonly end: number
  /** True for `--boundary--`. */
  readonly closing: boolean
}

/** Counts the lines of one body that only resemble delimiters, and the spaces and tabs at their ends, because each costs work. */
export class NearDelimiters {
  private count = 0
  private readonly max: number

  constructor(maxParts: number) {
    // Allows four lines for each record. If the boundary of a changeset begins with the batch boundary, up to three delimiters of the
    // changeset for each record resemble delimiters of the batch.
    this.max = 4 * maxParts + 64
  }

  /** Counts a line with `padding` spaces and tabs at its end. Throws `ADP_LIMIT` above the limit. */
  add(offset: number, padding: number): void {
    this.count += 1 + padding
    if (this.count <= this.max) return
    throw new AdapterError(
      'ADP_LIMIT',
      `The body has too many lines that begin with a boundary but are not delimiters (limit ${this.max}, spaces and tabs at line ends included). Nothing was posted. Use another boundary.`,
      { at: { offset } },
    )
  }
}

/**
 * Creates a function that finds the next delimiter line of one boundary within `[from, to)`: `--boundary`, optionally `--`, spaces or tabs,
 * and the line end, alone on its line (batch-wire F2; RFC 2046 5.1.1). The last line may lack its line end (F4).
 *
 * The search uses native code in steps, and reads each byte a bounded number of times. The search throws `ADP_LIMIT` if `near` counts too
 * many lines that resemble a delimiter, or if a delimiter has more than `maxPadding` spaces at its end.
 */
export function createDelimiterFinder(
  bytes: Buffer,
  boundary: string,
  maxPadding: number,
  near?: NearDelimiters,
): (from: number, to: number) => Steps<Delimiter | undefined> {
  // The needle includes the line end before the delimiter. Otherwise a boundary of dashes would be found at every byte of a row of dashes.
  const needle = Buffer.from(`\n--${boundary}`, 'latin1')
  const text = needle.length - 1
  return function* (from, to) {
    if (
      bytes[from] === DASH &&
      from + text <= to &&
      bytes.compare(needle, 1, text + 1, from, from + text) === 0
    ) {
      const found = readRest(bytes, from, from + text, to, maxPadding)
      if (found !== undefined) return found
    }
    for (let next = from, lines = 0; ; lines += 1) {
      const at = yield* searchInSteps(bytes, needle, next, to)
      if (at === -1) return undefined
      const found = readRest(bytes, at + 1, at + 1 + text, to, maxPadding, near)
      if (found !== undefined) return found
      next = at + 1
      if (lines % STEP_LINES === STEP_LINES - 1) yield STEP_LINES * LINE_WORK
    }
  }
}

/** Reads the rest of a line after the boundary. If the line is not a delimiter, counts it in `near` and returns `undefined`. */
function readRest(
  bytes: Buffer,
  start: number,
  after: number,
  to: number,
  maxPadding: number,
  near?: NearDelimiters,
): Delimiter | undefined {
  if (after > to) {
    near?.add(start, 0)
    return undefined
  }
  const closing = after + 1 < to && bytes[after] === DASH && bytes[after + 1] === DASH
  const text = closing ? after + 2 : after
  let at = text
  while (at < to && at - text <= maxPadding && (bytes[at] === SPACE || bytes[at] === TAB)) at += 1
  if (at - text > maxPadding) {
    const message = `A delimiter line has more than ${maxPadding} spaces and tabs at its end. Nothing was posted. Remove these characters.`
    throw new AdapterError('ADP_LIMIT', message, { at: { offset: start } })
  }
  if (at >= to) return { start, end: to, closing }
  if (bytes[at] === CR) at += 1
  if (at >= to) return { start, end: to, closing }
  if (bytes[at] === LF) return { start, end: at + 1, closing }
  near?.add(start, at - text)
  return undefined
}

/** Returns the offset at which the content of a part ends. The line end before a delimiter belongs to the delimiter (RFC 2046 5.1.1). */
export function contentEnd(bytes: Buffer, from: number, delimiterStart: number): number {
  let end = delimiterStart
  if (end > from && bytes[end - 1] === LF) end -= 1
  if (end > from && bytes[end - 1] === CR) end -= 1
  return end
}
