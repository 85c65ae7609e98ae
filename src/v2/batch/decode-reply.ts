import { AdapterError } from '../../errors.ts'
import { readHeaders, valuesOf } from '../http-part/headers.ts'
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
 * 200 of the id rule has none. Errors: as `decodeBatch` for the envelope, `ADP_REQUEST_LINE` for a part without a status line.
 */
export function decodeBatchReply(bytes: Buffer, contentType: string | undefined): DecodedReply[] {
  const replies: DecodedReply[] = []
  readParts(bytes, readBoundary(contentType), { start: 0, end: bytes.length }, replies)
  return replies
}

function readParts(bytes: Buffer, boundary: string, range: PartRange, replies: DecodedReply[]): void {
  const split = { maxPadding: defaultBatchLimits.maxBoundaryPadding, at: {} }
  for (const part of splitParts(bytes, boundary, range.start, range.end, split)) {
    const at = { offset: part.start }
    const mime = readHeaders(bytes, part.start, part.end, defaultBatchLimits, at)
    const type = valuesOf(mime.lines, 'content-type')[0] ?? ''
    if (type.startsWith('multipart/')) {
      readParts(bytes, readBoundary(type, at), { start: mime.end, end: part.end }, replies)
    } else {
      replies.push(readReply(bytes, mime.end, part.end, valuesOf(mime.lines, 'content-id')[0]))
    }
  }
}

function readReply(bytes: Buffer, from: number, to: number, mimeId: string | undefined): DecodedReply {
  const lineEnd = bytes.indexOf('\r\n', from)
  const status = /^HTTP\/1\.\d (\d{3})(?: |$)/.exec(
    bytes.toString('latin1', from, lineEnd === -1 ? to : lineEnd),
  )?.[1]
  if (status === undefined || lineEnd === -1) {
    throw new AdapterError('ADP_REQUEST_LINE', 'A part of the reply has no status line.', {
      at: { offset: from },
    })
  }
  const http = readHeaders(bytes, lineEnd + 2, to, defaultBatchLimits, { offset: from })
  return {
    contentId: mimeId ?? valuesOf(http.lines, 'content-id')[0],
    status: Number(status),
    body: bytes.toString('utf8', http.end, to).trim(),
  }
}
