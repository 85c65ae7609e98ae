import { AdapterError } from '../../errors.ts'
import type { ErrorLocation } from '../../errors.ts'
import { lineEnd, readHeaders, valuesOf } from '../../v2/http-part/headers.ts'
import { defaultBatchLimits } from '../../v2/limits.ts'
import { readBoundary } from '../../v2/multipart/boundary.ts'
import { splitParts } from '../../v2/multipart/parts.ts'
import type { PartRange } from '../../v2/multipart/parts.ts'
import type { Operation } from './operation.ts'

const split = { maxPadding: defaultBatchLimits.maxBoundaryPadding, at: {} }
const REQUEST_LINE = /^([A-Z]{1,16}) (\S{1,32768}) HTTP\/1\.[01]$/

/**
 * Reads a multipart batch request (OData protocol 11.7.7): requests alone, and changesets, which are atomic. Errors:
 * `AdapterError` of class `request` with the byte offset; nothing has been applied then.
 */
export function readMultipart(bytes: Buffer, contentType: string | undefined): Operation[] {
  const operations: Operation[] = []
  let changesets = 0
  for (const range of splitParts(bytes, readBoundary(contentType), 0, bytes.length, split)) {
    const at = { offset: range.start }
    const mime = readHeaders(bytes, range.start, range.end, defaultBatchLimits, at)
    const type = valuesOf(mime.lines, 'content-type')[0] ?? ''
    if (!/^multipart\/mixed/i.test(type)) {
      operations.push(readOperation(bytes, range, undefined))
      continue
    }
    changesets += 1
    const inner = { start: mime.end, end: range.end }
    for (const part of splitParts(bytes, readBoundary(type, at), inner.start, inner.end, split))
      operations.push(readOperation(bytes, part, `changeset ${changesets}`))
  }
  if (operations.length > defaultBatchLimits.maxParts)
    throw new AdapterError(
      'ADP_TOO_LARGE',
      `The batch has more than ${defaultBatchLimits.maxParts} requests.`,
    )
  return operations
}

function readOperation(bytes: Buffer, range: PartRange, group: string | undefined): Operation {
  const at: ErrorLocation = { offset: range.start }
  const mime = readHeaders(bytes, range.start, range.end, defaultBatchLimits, at)
  if (!/^application\/http\b/i.test(valuesOf(mime.lines, 'content-type')[0] ?? ''))
    throw new AdapterError('ADP_PART_TYPE', 'The Content-Type of a part must be application/http.', { at })
  const line = lineEnd(bytes, mime.end, range.end)
  const [, method, url] = REQUEST_LINE.exec(bytes.toString('latin1', mime.end, line.text)) ?? []
  if (method === undefined || url === undefined)
    throw new AdapterError('ADP_REQUEST_LINE', 'A part has no request line.', { at: { offset: mime.end } })
  const http = readHeaders(bytes, line.next, range.end, defaultBatchLimits, at)
  const id = valuesOf(mime.lines, 'content-id')[0] ?? valuesOf(http.lines, 'content-id')[0]
  // OData protocol 11.7.7.1: every request of a changeset has a Content-ID.
  if (group !== undefined && id === undefined)
    throw new AdapterError('ADP_CONTENT_ID', 'A request of a changeset has no Content-ID.', { at })
  const body = bytes.subarray(http.end, range.end)
  return { id, group, dependsOn: [], method, url, headers: new Map(http.lines), body }
}
