import { z } from 'zod'

import { AdapterError, type ErrorLocation } from '../../errors.ts'
import { lineEnd, readHeaders, valuesOf } from '../../v2/http-part/headers.ts'
import { defaultBatchLimits } from '../../v2/limits.ts'
import { type PartRange, readBoundary, splitParts } from '../../v2/multipart/parts.ts'
import type { Reply } from '../http/reply.ts'

/** One request of a batch. */
export interface Operation {
  /** Content-ID or JSON id; undefined: none was given. */
  readonly id: string | undefined
  /** Name of the changeset or atomicity group that applies whole or not at all; undefined: alone. */
  readonly group: string | undefined
  /** Ids of the operations that must have succeeded before. */
  readonly dependsOn: readonly string[]
  readonly method: string
  /** As written: absolute, absolute path, or relative to the service root. */
  readonly url: string
  /** Names in lower case. */
  readonly headers: ReadonlyMap<string, string>
  readonly body: Buffer
}

/** An operation with its answer. */
export interface OperationResult {
  readonly operation: Operation
  readonly reply: Reply
}

/** The path and query of an operation's URL (OData protocol 11.7.7.1). */
export function operationTarget(url: string, root: string): { path: string; query: string } {
  const local = url.replace(/^https?:\/\/[^/?]*/i, '')
  const absolute = local.startsWith('/') ? local : `${root}/${local}`
  const mark = absolute.indexOf('?')
  return mark < 0
    ? { path: absolute, query: '' }
    : { path: absolute.slice(0, mark), query: absolute.slice(mark + 1) }
}

const schema = z.object({
  requests: z
    .array(
      z.object({
        id: z.string().min(1),
        method: z.string().regex(/^[a-z]{1,16}$/i),
        url: z.string().min(1).max(32_768),
        atomicityGroup: z.string().min(1).optional(),
        dependsOn: z.array(z.string()).default([]),
        headers: z.record(z.string(), z.string()).default({}),
        body: z.unknown().optional(),
      }),
    )
    .max(20_000),
})

/**
 * Reads a JSON batch request (OData JSON format 19). Ids must be unique and come before those that depend on them; a group
 * is one run of requests. Errors: `ADP_BODY`.
 */
export function readJsonBatch(text: string): Operation[] {
  const parsed = schema.safeParse(parse(text))
  if (!parsed.success) throw refusal('The body is not a JSON batch request.')
  const { requests } = parsed.data
  const known = new Set<string>()
  const groups = new Set<string>()
  let open: string | undefined
  for (const { id, atomicityGroup, dependsOn } of requests) {
    if (known.has(id)) throw refusal('Two requests of the batch have the same id.')
    if (!dependsOn.every((name) => known.has(name) || groups.has(name)))
      throw refusal('A request depends on one that does not come before it.')
    if (atomicityGroup !== open) {
      open = atomicityGroup
      if (open !== undefined && groups.has(open)) throw refusal('An atomicity group is not in one piece.')
      if (open !== undefined) groups.add(open)
    }
    known.add(id)
  }
  return requests.map(({ id, method, url, atomicityGroup, dependsOn, headers, body }) => ({
    ...{ id, group: atomicityGroup, dependsOn, method: method.toUpperCase(), url },
    headers: new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])),
    body: Buffer.from(body === undefined ? '' : typeof body === 'string' ? body : JSON.stringify(body)),
  }))
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const refusal = (message: string): AdapterError => new AdapterError('ADP_BODY', message)

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
