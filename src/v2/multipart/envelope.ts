import { AdapterError } from '../../errors.ts'
import { isBoundary } from './boundary.ts'
import { createDelimiterFinder } from './delimiter.ts'
import type { BatchLimits } from '../limits.ts'

const LF = 0x0a
const MAX_LINE_BYTES = 400

/**
 * Chooses the boundary that frames the body (batch-wire F12). Normally it is the header's. Legacy clients name a changeset's
 * id there, or an id that is nowhere in the body; then the outermost closed envelope frames it, so that no changeset is
 * left outside: of the lines `--<token>` before the header's first own delimiter, the one whose `--<token>--` comes last.
 *
 * Errors: `ADP_TRUNCATED` when neither the header's boundary nor a closed envelope is there, or when an envelope was
 * opened (a delimiter line with a Content-Type below it) and would be left outside (F8).
 */
export function chooseBoundary(
  bytes: Buffer,
  headerBoundary: string,
  from: number,
  limits: BatchLimits,
): string {
  const own = createDelimiterFinder(bytes, headerBoundary, limits.maxBoundaryPadding)(from, bytes.length)
  const limit = own?.start ?? bytes.length
  // The usual body opens with the header's delimiter: no line with two dashes before it.
  if (own !== undefined && bytes.indexOf('--', from) === limit) return headerBoundary
  const candidates = collectTokens(bytes, from, limit, 2 * limits.maxParts + 16)
  const closes = collectCloses(bytes, from, candidates, headerBoundary)
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
      'The body has no delimiter of the boundary in Content-Type and no closed envelope. Nothing was posted; ' +
        'send the whole body and name its boundary.',
      { at: { offset: bytes.length } },
    )
  }
  return headerBoundary
}

interface Opener {
  /** Offset of the first line with this token. */
  readonly start: number
  /** True when a Content-Type header follows: an envelope or part, not prose. */
  readonly declares: boolean
}

/** The lines `--<token>` that start before `limit`, by token, in order. */
function collectTokens(bytes: Buffer, from: number, limit: number, maxTokens: number): Map<string, Opener> {
  const tokens = new Map<string, Opener>()
  for (const line of dashLines(bytes, from, limit)) {
    if (!tokens.has(line.token) && isBoundary(line.token)) {
      if (tokens.size === maxTokens) throw tooMany(line.start)
      tokens.set(line.token, { start: line.start, declares: startsWithContentType(bytes, line.end) })
    }
  }
  return tokens
}

/** The offset of the last `--<token>--` after its opening line, for each candidate and for the header's boundary. */
function collectCloses(
  bytes: Buffer,
  from: number,
  candidates: Map<string, Opener>,
  headerBoundary: string,
): Map<string, number> {
  const closes = new Map<string, number>()
  for (const line of dashLines(bytes, from, bytes.length)) {
    if (!line.token.endsWith('--')) continue
    const token = line.token.slice(0, -2)
    const opener = candidates.get(token)
    if (token === headerBoundary || (opener !== undefined && opener.start < line.start))
      closes.set(token, line.start)
  }
  return closes
}

/** Every line that begins with two dashes: its text after them, without blanks at the end. */
function* dashLines(
  bytes: Buffer,
  from: number,
  limit: number,
): Generator<{ token: string; start: number; end: number }> {
  for (let start = bytes.indexOf('--', from); start !== -1 && start < limit;) {
    const lineEnd = bytes.indexOf(LF, start)
    const end = lineEnd === -1 ? bytes.length : lineEnd
    if (start === from || bytes[start - 1] === LF) {
      // A longer line is no boundary, so its rest need not be read.
      const token = bytes.toString('latin1', start + 2, Math.min(end, start + MAX_LINE_BYTES)).trimEnd()
      if (token !== '') yield { token, start, end: Math.min(end + 1, bytes.length) }
    }
    start = bytes.indexOf('--', end)
  }
}

function startsWithContentType(bytes: Buffer, at: number): boolean {
  return /^content-(type|transfer-encoding|id)[ \t]*:/i.test(bytes.toString('latin1', at, at + 40))
}

function unclosed(offset: number): AdapterError {
  return new AdapterError(
    'ADP_TRUNCATED',
    'The body opens an envelope that it does not close, or holds a second one. Nothing was posted; send one whole batch.',
    { at: { offset } },
  )
}

function tooMany(offset: number): AdapterError {
  return new AdapterError(
    'ADP_LIMIT',
    'The body has too many lines that look like delimiters of different boundaries.',
    {
      at: { offset },
    },
  )
}
