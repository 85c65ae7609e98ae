import { AdapterError } from '../../errors.ts'
import { lineEnd, readHeaders, valuesOf } from '../http-part/headers.ts'
import { defaultBatchLimits } from '../limits.ts'
import { readBoundary } from '../multipart/boundary.ts'
import { type PartRange, splitParts } from '../multipart/parts.ts'

/** One part of a batch reply as a client reads it. */
export interface DecodedReply {
  /** From the MIME headers, else from the HTTP headers. */
  readonly contentId: string | undefined
  readonly status: number
  /** The text of the body; empty for none. */
  readonly body: string
}

/**
 * Decodes a V2 batch reply, flat or nested (batch-wire 2), as a client would: one entry for each part, in order. The single
 * 200 of the id rule has none. Errors: as `decodeBatch` for the envelope, `ADP_NESTING` for changesets in changesets,
 * `ADP_REQUEST_LINE` for a part without a status line.
 */
export function decodeBatchReply(bytes: Buffer, contentType: string | undefined): DecodedReply[] {
  const replies: DecodedReply[] = []
  readParts(bytes, readBoundary(contentType), { start: 0, end: bytes.length }, false, replies)
  return replies
}

function readParts(
  bytes: Buffer,
  boundary: string,
  range: PartRange,
  inChangeset: boolean,
  replies: DecodedReply[],
): void {
  const split = { maxPadding: defaultBatchLimits.maxBoundaryPadding, at: {} }
  for (const part of splitParts(bytes, boundary, range.start, range.end, split)) {
    const at = { offset: part.start }
    const mime = readHeaders(bytes, part.start, part.end, defaultBatchLimits, at)
    const type = valuesOf(mime.lines, 'content-type')[0] ?? ''
    if (type.startsWith('multipart/')) {
      // A reply is another's text: its depth is bounded like that of a request.
      if (inChangeset)
        throw new AdapterError('ADP_NESTING', 'A changeset of the reply holds another one.', { at })
      readParts(bytes, readBoundary(type, at), { start: mime.end, end: part.end }, true, replies)
    } else {
      replies.push(readReply(bytes, mime.end, part.end, valuesOf(mime.lines, 'content-id')[0]))
    }
  }
}

function readReply(bytes: Buffer, from: number, to: number, mimeId: string | undefined): DecodedReply {
  const line = lineEnd(bytes, from, to)
  const status = /^HTTP\/1\.\d (\d{3})(?: |$)/.exec(bytes.toString('latin1', from, line.text))?.[1]
  if (status === undefined) {
    throw new AdapterError('ADP_REQUEST_LINE', 'A part of the reply has no status line.', {
      at: { offset: from },
    })
  }
  const http = readHeaders(bytes, line.next, to, defaultBatchLimits, { offset: from })
  return {
    contentId: mimeId ?? valuesOf(http.lines, 'content-id')[0],
    status: Number(status),
    body: bytes.toString('utf8', http.end, to).trim(),
  }
}
