import { AdapterError } from '../../errors.ts'
import type { Steps } from '../../http/slices.ts'
import { createDelimiterFinder, isBoundary, type NearDelimiters, searchInSteps } from './parts.ts'
import type { BatchLimits } from '../limits.ts'

const LF = 0x0a
const DASH = 0x2d
const MAX_LINE_BYTES = 400
const MAX_NAME_BYTES = 80

/** The number of lines that are read in one step. */
const LINES_PER_STEP = 1_000
/** The cost of one step, in the units of `Slices.spend`: the number of bytes that take the same time to decode. */
const STEP_WORK = 524_288

/**
 * Chooses the boundary that frames the body (batch-wire F12). Normally this is the boundary in the header. Some legacy clients name the id
 * of a changeset in the header, or an id that is not in the body. Then the outermost closed envelope frames the body, so that no changeset
 * is left out. To find it, the function considers the lines `--<token>` before the first delimiter with the header's boundary, and chooses
 * the token whose closing line `--<token>--` comes last.
 *
 * Throws `ADP_TRUNCATED` if the body has neither a delimiter with the header's boundary nor a closed envelope, or if another envelope
 * begins before the chosen one (batch-wire F8). A line `--<token>` begins an envelope if MIME headers follow it. Throws `ADP_LIMIT` for too
 * many lines that begin with two dashes.
 */
export function* chooseBoundary(
  bytes: Buffer,
  headerBoundary: string,
  from: number,
  limits: BatchLimits,
  near?: NearDelimiters,
): Steps<string> {
  const find = createDelimiterFinder(bytes, headerBoundary, limits.maxBoundaryPadding, near)
  const own = yield* find(from, bytes.length)
  const limit = own?.start ?? bytes.length
  // The usual case: the first line that begins with two dashes is a delimiter with the header's boundary, so no envelope begins earlier.
  if (own !== undefined && (yield* nextDashes(bytes, from, from, bytes.length)) === limit)
    return headerBoundary
  // Four lines for each record suffice, because a record in a changeset of its own has three lines that begin with two dashes.
  const maxLines = 4 * limits.maxParts + 64
  const candidates = yield* collectTokens(bytes, from, limit, maxLines)
  const closes = yield* collectCloses(bytes, from, candidates, headerBoundary, maxLines)
  let framing: string | undefined
  let lastClose = own === undefined ? -1 : (closes.get(headerBoundary) ?? -1)
  for (const token of candidates.keys()) {
    const close = closes.get(token) ?? -1
    if (close > lastClose) [framing, lastClose] = [token, close]
  }
  const start = framing === undefined ? limit : (candidates.get(framing)?.start ?? 0)
  for (const opener of candidates.values()) {
    if (opener.start < start && opener.declares) throw unclosed(opener.start)
  }
  if (framing !== undefined) return framing
  if (own === undefined) {
    throw new AdapterError(
      'ADP_TRUNCATED',
      'The body has no delimiter of the boundary in Content-Type and no closed envelope. Nothing was posted. ' +
        'Send the whole body and name its boundary.',
      { at: { offset: bytes.length } },
    )
  }
  return headerBoundary
}

interface Opener {
  readonly start: number
  /** True if MIME headers follow the line, so that the line begins an envelope or a part and is not prose. */
  readonly declares: boolean
}

/** Collects the tokens of the lines `--<token>` that start before `limit`, in order, each with its first line. */
function* collectTokens(
  bytes: Buffer,
  from: number,
  limit: number,
  maxLines: number,
): Steps<Map<string, Opener>> {
  const tokens = new Map<string, Opener>()
  const declares = createDeclares(bytes)
  for (const line of dashLines(bytes, from, limit, maxLines)) {
    if (typeof line === 'number') {
      yield line
      continue
    }
    if (!tokens.has(line.token) && isBoundary(line.token)) {
      tokens.set(line.token, { start: line.start, declares: yield* declares(line.end) })
    }
  }
  return tokens
}

/**
 * Maps the header's boundary and each candidate token to the offset of its last closing line `--<token>--`. Ignores a closing line before
 * the first line `--<token>` of a candidate.
 */
function* collectCloses(
  bytes: Buffer,
  from: number,
  candidates: Map<string, Opener>,
  headerBoundary: string,
  maxLines: number,
): Steps<Map<string, number>> {
  const closes = new Map<string, number>()
  for (const line of dashLines(bytes, from, bytes.length, maxLines)) {
    if (typeof line === 'number') {
      yield line
      continue
    }
    if (!line.token.endsWith('--')) continue
    const token = line.token.slice(0, -2)
    const opener = candidates.get(token)
    if (token === headerBoundary || (opener !== undefined && opener.start < line.start))
      closes.set(token, line.start)
  }
  return closes
}

interface DashLine {
  /** The text after the dashes, without white space at its end. */
  readonly token: string
  readonly start: number
  readonly end: number
}

const LINE_OF_DASHES = Buffer.from('\n--')

/** Returns the offset of the next line that begins with two dashes, or -1 if there is none. The first line begins at `bodyStart`. */
function* nextDashes(bytes: Buffer, bodyStart: number, from: number, limit: number): Steps<number> {
  if (from === bodyStart && bytes[from] === DASH && bytes[from + 1] === DASH) return from
  const found = yield* searchInSteps(bytes, LINE_OF_DASHES, Math.max(from - 1, bodyStart), limit - 1)
  return found === -1 ? -1 : found + 1
}

/**
 * Yields the lines that begin with two dashes and start before `limit`, and the work of the search as numbers. Throws `ADP_LIMIT` if there
 * are more than `maxLines` such lines.
 */
export function* dashLines(
  bytes: Buffer,
  from: number,
  limit: number,
  maxLines: number,
): Generator<DashLine | number, void> {
  let next = from
  for (let count = 1; ; count += 1) {
    const start = yield* nextDashes(bytes, from, next, limit)
    if (start === -1) return
    if (count > maxLines) throw tooMany(start)
    if (count % LINES_PER_STEP === 0) yield STEP_WORK
    const lineEnd = bytes.indexOf(LF, start)
    const end = lineEnd === -1 ? bytes.length : lineEnd
    // Reads only the beginning of a long line, because a line of more than MAX_LINE_BYTES cannot be a delimiter.
    const token = bytes.toString('latin1', start + 2, Math.min(end, start + MAX_LINE_BYTES)).trimEnd()
    next = Math.min(end + 1, bytes.length)
    if (token !== '') yield { token, start, end: next }
  }
}

/** Creates a function that returns true if MIME headers begin at an offset. The offsets of successive calls must increase. */
function createDeclares(bytes: Buffer): (from: number) => Steps<boolean> {
  let readTo = 0
  let declares = false
  return function* (from) {
    // The previous call already read the headers at this offset, so its result is also the result of this call.
    if (from < readTo) return declares
    declares = false
    let lines = 0
    for (let at = from; at < bytes.length; at = readTo) {
      lines += 1
      if (lines % LINES_PER_STEP === 0) yield STEP_WORK
      const start = bytes.toString('latin1', at, at + MAX_NAME_BYTES)
      declares = /^content-(type|transfer-encoding|id)[ \t]*:/i.test(start)
      if (declares || !/^([!#$%&'*+\-.^_`|~0-9a-z]+[ \t]*:|[ \t]+[^ \t\r\n])/i.test(start)) break
      const lineEnd = bytes.indexOf(LF, at)
      readTo = lineEnd === -1 ? bytes.length : lineEnd + 1
    }
    return declares
  }
}

function unclosed(offset: number): AdapterError {
  return new AdapterError(
    'ADP_TRUNCATED',
    'The body opens an envelope that it does not close, or contains a second envelope. Nothing was posted. Send one whole batch.',
    { at: { offset } },
  )
}

function tooMany(offset: number): AdapterError {
  return new AdapterError(
    'ADP_LIMIT',
    'The body does not begin with the boundary of Content-Type, and has too many lines that begin with two dashes. Nothing was posted. Begin the body with that boundary.',
    { at: { offset } },
  )
}
