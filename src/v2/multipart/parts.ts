import { AdapterError, type ErrorLocation } from '../../errors.ts'

/** A part's bytes, headers and content, as offsets `[start, end)` into the body. */
export interface PartRange {
  readonly start: number
  readonly end: number
}

interface SplitOptions {
  readonly maxPadding: number
  readonly near?: NearDelimiters
  /** The name of the multipart body, for errors. */
  readonly at: ErrorLocation
}

/**
 * Yields the parts of one multipart body within `[from, to)`, in order; preamble and epilogue are passed over
 * (batch-wire F3). An empty body yields nothing, whether it is closed at once or has one blank part (F11).
 * Errors: `ADP_TRUNCATED` when the body has no delimiter or no closing delimiter (F8): decided after the parts
 * before it were yielded, so nothing may be acted on until the iteration ends.
 */
export function* splitParts(
  bytes: Buffer,
  boundary: string,
  from: number,
  to: number,
  options: SplitOptions,
): Generator<PartRange, void> {
  const find = createDelimiterFinder(bytes, boundary, options.maxPadding, options.near)
  let open = find(from, to)
  if (open === undefined) throw truncated('no delimiter of its boundary', from, options.at)
  for (let count = 0; !open.closing; count += 1) {
    const next: Delimiter | undefined = find(open.end, to)
    if (next === undefined) throw truncated('no closing delimiter', to, options.at)
    const part = { start: open.end, end: contentEnd(bytes, open.end, next.start) }
    const emptyBody = count === 0 && next.closing && isBlank(bytes, part)
    if (!emptyBody) yield part
    open = next
  }
}

function isBlank(bytes: Buffer, part: PartRange): boolean {
  for (let at = part.start; at < part.end; at += 1) {
    const byte = bytes[at]
    if (byte !== 0x0a && byte !== 0x0d && byte !== 0x20 && byte !== 0x09) return false
  }
  return true
}

function truncated(what: string, offset: number, at: ErrorLocation): AdapterError {
  const where = at.changeset === undefined ? 'batch' : 'changeset'
  return new AdapterError(
    'ADP_TRUNCATED',
    `The ${where} has ${what}: it is cut off or its boundary is another. Nothing was posted; send it whole.`,
    { at: { ...at, offset } },
  )
}

const LF = 0x0a
const CR = 0x0d
const DASH = 0x2d
const SPACE = 0x20
const TAB = 0x09

/** A delimiter line found in the bytes; offsets from the start of the body. */
export interface Delimiter {
  /** First byte of the line, its first dash. */
  readonly start: number
  /** First byte after the line end. */
  readonly end: number
  /** True for `--boundary--`. */
  readonly closing: boolean
}

/** Counts lines that begin as a delimiter and are none, and the blanks at their ends, over all finders of one body. */
export class NearDelimiters {
  private count = 0
  private readonly max: number

  constructor(maxParts: number) {
    // The delimiters of an inner boundary that begins with the outer one are such lines: three for each record at the most.
    this.max = 4 * maxParts + 64
  }

  /** `blanks`: how many were read at the end of the line. Error: `ADP_LIMIT` at the limit. */
  add(offset: number, blanks: number): void {
    this.count += 1 + blanks
    if (this.count <= this.max) return
    throw new AdapterError(
      'ADP_LIMIT',
      `The body has more than ${this.max} lines that begin with a boundary and are no delimiters.`,
      { at: { offset } },
    )
  }
}

/**
 * Finds the next line that is a delimiter of one boundary within `[from, to)`: `--boundary`, optionally `--`, blanks, line
 * end, alone on its line (batch-wire F2; RFC 2046 5.1.1). The last line may lack its line end (F4). Anything else that
 * holds the boundary is body text. The search is native, each byte is read a bounded number of times, and `near` bounds the
 * lines that have to be read (default: no bound). Errors: `ADP_LIMIT`.
 */
export function createDelimiterFinder(
  bytes: Buffer,
  boundary: string,
  maxPadding: number,
  near?: NearDelimiters,
): (from: number, to: number) => Delimiter | undefined {
  // With its line end: a boundary of dashes would else be found at every byte of a row of dashes.
  const needle = Buffer.from(`\n--${boundary}`, 'latin1')
  const text = needle.length - 1
  return (from, to) => {
    if (
      bytes[from] === DASH &&
      from + text <= to &&
      bytes.compare(needle, 1, text + 1, from, from + text) === 0
    ) {
      const found = readRest(bytes, from, from + text, to, maxPadding)
      if (found !== undefined) return found
    }
    for (let at = bytes.indexOf(needle, from); at !== -1 && at < to; at = bytes.indexOf(needle, at + 1)) {
      const found = readRest(bytes, at + 1, at + 1 + text, to, maxPadding, near)
      if (found !== undefined) return found
    }
    return undefined
  }
}

/** Reads the rest of a line after the boundary; undefined if it is not a delimiter, which `near` counts. */
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
  while (at < to && (bytes[at] === SPACE || bytes[at] === TAB)) at += 1
  if (at - text > maxPadding) {
    throw new AdapterError('ADP_LIMIT', `A delimiter line has more than ${maxPadding} blanks at its end.`, {
      at: { offset: start },
    })
  }
  if (at >= to) return { start, end: to, closing }
  if (bytes[at] === CR) at += 1
  if (at >= to) return { start, end: to, closing }
  if (bytes[at] === LF) return { start, end: at + 1, closing }
  near?.add(start, at - text)
  return undefined
}

/** The end of a part's content: the line end before a delimiter belongs to the delimiter (RFC 2046 5.1.1). */
export function contentEnd(bytes: Buffer, from: number, delimiterStart: number): number {
  let end = delimiterStart
  if (end > from && bytes[end - 1] === LF) end -= 1
  if (end > from && bytes[end - 1] === CR) end -= 1
  return end
}
