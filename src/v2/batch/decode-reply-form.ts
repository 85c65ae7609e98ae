import { AdapterError } from '../../errors.ts'
import { type HeaderLines, lineEnd, readHeaders, valuesOf } from '../http-part/headers.ts'
import { defaultBatchLimits } from '../limits.ts'
import { readBoundary } from '../multipart/boundary.ts'
import { contentEnd, createDelimiterFinder } from '../multipart/delimiter.ts'

/** One part of a batch reply with all that is around its body. */
export interface ReplyPartForm {
  /** Position of the changeset response that it stands in, from 1; undefined: directly under the batch. */
  readonly changeset: number | undefined
  readonly mime: HeaderLines
  readonly status: number
  /** The reason phrase of the status line; empty for none. */
  readonly reason: string
  readonly http: HeaderLines
  /** The text of the body; empty for none. Bytes that are no UTF-8 become U+FFFD. */
  readonly body: string
}

/** A whole batch reply with its form, so that two of them can be compared. */
export interface ReplyForm {
  /** Changeset responses, also empty ones. */
  readonly changesets: number
  readonly parts: readonly ReplyPartForm[]
}

/**
 * Reads a whole V2 batch reply with its form. Unlike `decodeBatchReply`, it keeps the header fields, the reason phrase and the place of each
 * part. Errors: as `decodeBatchReply`; `ADP_LIMIT` for more parts than a batch may have.
 */
export function decodeReplyForm(bytes: Buffer, contentType: string | undefined): ReplyForm {
  const outer = splitParts(bytes, 0, bytes.length, readBoundary(contentType))
  const parts: ReplyPartForm[] = []
  let changesets = 0
  for (const { start, end } of outer) {
    const mime = readHeaders(bytes, start, end, defaultBatchLimits, {})
    const type = valuesOf(mime.lines, 'content-type')[0] ?? ''
    if (!/^multipart\//i.test(type)) {
      parts.push(readPart(bytes, start, end, undefined))
      continue
    }
    changesets += 1
    const changeset = changesets
    for (const inner of splitParts(bytes, mime.end, end, readBoundary(type)))
      parts.push(readPart(bytes, inner.start, inner.end, changeset))
  }
  return { changesets, parts }
}

interface Range {
  readonly start: number
  readonly end: number
}

/** The ranges between the delimiters of one boundary; a single blank one is none (batch-wire F11). */
function splitParts(bytes: Buffer, from: number, to: number, boundary: string): readonly Range[] {
  const next = createDelimiterFinder(bytes, boundary, defaultBatchLimits.maxBoundaryPadding)
  const ranges: Range[] = []
  let before = next(from, to)
  while (before !== undefined && !before.closing) {
    const after = next(before.end, to)
    if (after === undefined) break
    ranges.push({ start: before.end, end: contentEnd(bytes, before.end, after.start) })
    if (ranges.length > defaultBatchLimits.maxParts)
      throw new AdapterError('ADP_LIMIT', 'The reply has more parts than a batch may have.')
    before = after
  }
  if (before?.closing !== true)
    throw new AdapterError(
      'ADP_TRUNCATED',
      'The reply has no closing delimiter: it is cut off or its boundary is another.',
    )
  const [first] = ranges
  const isBlank = first !== undefined && bytes.toString('latin1', first.start, first.end).trim() === ''
  return ranges.length === 1 && isBlank ? [] : ranges
}

function readPart(bytes: Buffer, start: number, end: number, changeset: number | undefined): ReplyPartForm {
  const mime = readHeaders(bytes, start, end, defaultBatchLimits, {})
  const line = lineEnd(bytes, mime.end, end)
  const [, status, reason = ''] =
    /^HTTP\/1\.\d (\d{3})(?: (.*))?$/.exec(bytes.toString('latin1', mime.end, line.text)) ?? []
  if (status === undefined)
    throw new AdapterError('ADP_REQUEST_LINE', 'A part of the reply has no status line.')
  const http = readHeaders(bytes, line.next, end, defaultBatchLimits, {})
  return {
    changeset,
    mime: mime.lines,
    status: Number(status),
    reason,
    http: http.lines,
    body: bytes.toString('utf8', http.end, end).trim(),
  }
}
