import { z } from 'zod'
import { AdapterError, type ErrorLocation } from '../errors.ts'
import { lineEnd, readHeaders, valuesOf } from '../v2/http-part/headers.ts'
import { defaultBatchLimits } from '../v2/limits.ts'
import { type PartRange, readBoundary, splitParts } from '../v2/multipart/parts.ts'
import { randomUUID } from 'node:crypto'
import { STATUS_CODES } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { faultReply, jsonReply, odataError, type Reply } from './http/reply.ts'
import type { RoutedRequest, Service } from './http/request.ts'
import { parseJson } from './json.ts'

interface Operation {
  /** The Content-ID or JSON id, or `undefined` if the request has none. */
  readonly id: string | undefined
  /** The changeset or atomicity group, which is applied as a whole or not at all, or `undefined` outside a group. */
  readonly group: string | undefined
  /** The ids of the operations and groups that must succeed before this operation runs. */
  readonly dependsOn: readonly string[]
  readonly method: string
  /** The URL as written: absolute, an absolute path, or relative to the service root. */
  readonly url: string
  /** The header fields by name in lower case. */
  readonly headers: ReadonlyMap<string, string>
  readonly body: Buffer
}

interface OperationResult {
  readonly operation: Operation
  readonly reply: Reply
}

/** Resolves the URL of an operation to a path and a query (OData protocol 11.7.7.1). */
function operationTarget(url: string, root: string): { path: string; query: string } {
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
 * Parses a JSON batch request (OData JSON format 19). Throws `ADP_BODY` if two requests have the same id, if a request depends on a later
 * request, or if the requests of a group are not consecutive.
 */
function readJsonBatch(text: string): Operation[] {
  const parsed = schema.safeParse(parseJson(text))
  if (!parsed.success)
    throw refusal('The body is not a JSON batch request.', 'Send an object with a list of requests.')
  const { requests } = parsed.data
  const known = new Set<string>()
  const groups = new Set<string>()
  let current: string | undefined
  for (const { id, atomicityGroup, dependsOn } of requests) {
    if (known.has(id))
      throw refusal('Two requests of the batch have the same id.', 'Give each request an id of its own.')
    if (!dependsOn.every((name) => known.has(name) || groups.has(name)))
      throw refusal(
        'A request depends on a request that does not precede it.',
        'Send the other request first.',
      )
    if (atomicityGroup !== current) {
      current = atomicityGroup
      if (current !== undefined && groups.has(current))
        throw refusal(
          'The requests of a group are not adjacent.',
          'Send the requests of a group one after another.',
        )
      if (current !== undefined) groups.add(current)
    }
    known.add(id)
  }
  return requests.map(({ id, method, url, atomicityGroup, dependsOn, headers, body }) => ({
    ...{ id, group: atomicityGroup, dependsOn, method: method.toUpperCase(), url },
    headers: new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])),
    body: Buffer.from(body === undefined ? '' : typeof body === 'string' ? body : JSON.stringify(body)),
  }))
}

const refusal = (message: string, remedy: string): AdapterError =>
  new AdapterError('ADP_BODY', `${message} Nothing was applied. ${remedy}`)

const split = { maxPadding: defaultBatchLimits.maxBoundaryPadding, at: {} }
const REQUEST_LINE = /^([A-Z]{1,16}) (\S{1,32768}) HTTP\/1\.[01]$/

/**
 * Parses a multipart batch request (OData protocol 11.7.7) with individual requests and atomic changesets. Throws an `AdapterError` with
 * the byte offset if the batch is malformed, before anything is applied.
 */
function readMultipart(bytes: Buffer, contentType: string | undefined): Operation[] {
  const operations: Operation[] = []
  let changesets = 0
  for (const range of splitParts(bytes, readBoundary(contentType), 0, bytes.length, split)) {
    if (typeof range === 'number') continue
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
      if (typeof part !== 'number') operations.push(readOperation(bytes, part, `changeset ${changesets}`))
  }
  if (operations.length > defaultBatchLimits.maxParts)
    throw new AdapterError(
      'ADP_TOO_LARGE',
      `The batch has more than ${defaultBatchLimits.maxParts} requests. Nothing was applied. Send smaller batches.`,
    )
  return operations
}

function readOperation(bytes: Buffer, range: PartRange, group: string | undefined): Operation {
  const at: ErrorLocation = { offset: range.start }
  const mime = readHeaders(bytes, range.start, range.end, defaultBatchLimits, at)
  if (!/^application\/http\b/i.test(valuesOf(mime.lines, 'content-type')[0] ?? ''))
    throw new AdapterError(
      'ADP_PART_TYPE',
      'The Content-Type of a part is not application/http. Nothing was applied. Send each request in a part of this type.',
      { at },
    )
  const line = lineEnd(bytes, mime.end, range.end)
  const [, method, url] = REQUEST_LINE.exec(bytes.toString('latin1', mime.end, line.text)) ?? []
  if (method === undefined || url === undefined)
    throw new AdapterError(
      'ADP_REQUEST_LINE',
      'A part has no request line. Nothing was applied. Begin the part with a line such as: POST AttendanceRecords HTTP/1.1.',
      { at: { offset: mime.end } },
    )
  const http = readHeaders(bytes, line.next, range.end, defaultBatchLimits, at)
  const id = valuesOf(mime.lines, 'content-id')[0] ?? valuesOf(http.lines, 'content-id')[0]
  // Every request of a changeset needs a Content-ID (OData protocol 11.7.7.1).
  if (group !== undefined && id === undefined)
    throw new AdapterError(
      'ADP_CONTENT_ID',
      'A request of a changeset has no Content-ID. Nothing was applied. Give each request of a changeset a Content-ID.',
      { at },
    )
  const body = bytes.subarray(http.end, range.end)
  return { id, group, dependsOn: [], method, url, headers: new Map(http.lines), body }
}

interface BatchParts {
  readonly service: Service
  readonly attempt: (work: () => boolean) => boolean
  /** Returns the reply of a configured fault, which replaces the reply of the service. Returns `undefined` if no fault applies. */
  readonly disturb: (method: string, path: string) => Reply | undefined
}

/**
 * The number of reply bytes after which the batch refuses further reads, because 20,000 reads could produce gigabytes. Writes are not
 * refused.
 */
const maxAnswerBytes = 33_554_432
const repliesTooLarge = odataError(
  413,
  'PayloadTooLarge',
  'The replies of the batch exceed 32 MiB. This read was not executed. Send the read in another batch.',
)

/**
 * Answers `POST …/V3/$batch`. The service announced this resource but never showed its format (service-facts 3), so both formats of OData
 * 4.01 are accepted: multipart and JSON. Throws `AdapterError` for a malformed batch before any request is applied.
 */
export async function answerOperations(parts: BatchParts, request: RoutedRequest): Promise<Reply> {
  const contentType = request.header('content-type')
  const isJson = /^application\/json\b/i.test(contentType ?? '')
  const operations = isJson
    ? readJsonBatch(request.body.toString('utf8'))
    : readMultipart(request.body, contentType)
  const continueOnError = /continue-on-error(?!\s*=\s*false)/i.test(request.header('prefer') ?? '')
  let answerBytes = 0
  const execute = (operation: Operation): Reply => {
    if (operation.method === 'GET' && answerBytes > maxAnswerBytes) return repliesTooLarge
    const reply = executeOne(parts, request, operation)
    answerBytes += reply.body.length
    return reply
  }
  const { paceMs } = request
  const wait = paceMs === undefined ? undefined : () => delay(paceMs)
  const results = await runOperations(operations, execute, parts.attempt, continueOnError, wait)
  return isJson ? writeJson(results) : writeMultipart(results)
}

function executeOne({ service, disturb }: BatchParts, outer: RoutedRequest, operation: Operation): Reply {
  const { path, query } = operationTarget(operation.url, outer.route.root)
  const injected = disturb(operation.method, path)
  if (injected !== undefined) return injected
  const isHead = operation.method === 'HEAD'
  try {
    const reply = service({
      ...outer,
      method: isHead ? 'GET' : operation.method,
      path,
      query,
      body: operation.body,
      header: (name) => operation.headers.get(name),
    })
    return isHead ? { ...reply, body: '' } : reply
  } catch (error) {
    if (error instanceof AdapterError) return faultReply(error)
    throw error
  }
}

function writeJson(results: readonly OperationResult[]): Reply {
  const responses = results.map(({ operation, reply }) => ({
    id: operation.id,
    ...(operation.group === undefined ? {} : { atomicityGroup: operation.group }),
    status: reply.status,
    headers: reply.headers,
    ...(reply.body.length === 0 ? {} : { body: bodyOf(reply) }),
  }))
  return jsonReply(200, JSON.stringify({ responses }))
}

function bodyOf({ headers, body }: Reply): unknown {
  const text = body.toString()
  return headers['Content-Type']?.startsWith('application/json') === true ? JSON.parse(text) : text
}

function writeMultipart(results: readonly OperationResult[]): Reply {
  const boundary = `batchresponse_${randomUUID()}`
  let text = ''
  let group: string | undefined
  let inner: string | undefined
  const closeChangeset = (): void => {
    if (inner !== undefined) text += `--${inner}--\r\n`
    inner = undefined
  }
  for (const { operation, reply } of results) {
    // Leaves out the 424 of the other requests. A failed changeset gets a single response, which is the response to the request that failed
    // (OData protocol 11.7.7.4).
    if (operation.group !== undefined && reply.status === 424) continue
    if (operation.group !== group || inner === undefined) closeChangeset()
    group = operation.group
    if (group !== undefined && inner === undefined && reply.status < 400) {
      inner = `changesetresponse_${randomUUID()}`
      text += `--${boundary}\r\nContent-Type: multipart/mixed; boundary=${inner}\r\n\r\n`
    }
    text += writePart(inner ?? boundary, operation, reply)
  }
  closeChangeset()
  const headers = { 'Content-Type': `multipart/mixed; boundary=${boundary}`, 'OData-Version': '4.0' }
  return { status: 200, headers, body: `${text}--${boundary}--\r\n` }
}

function writePart(boundary: string, { id }: Operation, reply: Reply): string {
  const contentId = id === undefined ? '' : `Content-ID: ${id}\r\n`
  const length = reply.body.length === 0 ? {} : { 'Content-Length': String(Buffer.byteLength(reply.body)) }
  const headers = Object.entries({ ...reply.headers, ...length }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  )
  return (
    `--${boundary}\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n${contentId}\r\n` +
    `HTTP/1.1 ${reply.status} ${STATUS_CODES[reply.status] ?? 'Unknown'}\r\n${headers.join('')}\r\n${reply.body.toString()}\r\n`
  )
}

const failed = ({ reply }: OperationResult): boolean => reply.status >= 400
const dependencyFailed = odataError(
  424,
  'FailedDependency',
  'This request was not applied, because it depends on a request that failed. Correct the other request.',
)

/**
 * Runs the operations in order and applies each group as a whole or not at all. Calls `wait` before each operation or group. Without
 * `continueOnError` the batch stops after the first failure (OData protocol 11.7.7.3). In a failed group, the failed operation keeps its
 * own reply, and the other operations get 424.
 */
async function runOperations(
  operations: readonly Operation[],
  execute: (operation: Operation) => Reply,
  attempt: BatchParts['attempt'],
  continueOnError: boolean,
  wait: (() => Promise<void>) | undefined,
): Promise<OperationResult[]> {
  const results: OperationResult[] = []
  const failedIds = new Set<string>()
  const runOne = (operation: Operation): OperationResult => {
    const blocked = operation.dependsOn.some((id) => failedIds.has(id))
    return { operation, reply: blocked ? dependencyFailed : execute(operation) }
  }
  const runGroup = (group: readonly Operation[]): OperationResult[] => {
    const done: OperationResult[] = []
    const isCommitted = attempt(() =>
      group.every((operation) => {
        const result = runOne(operation)
        done.push(result)
        return !failed(result)
      }),
    )
    const failure = done.at(-1)
    if (isCommitted || failure === undefined) return done
    return group.map((operation) =>
      operation === failure.operation ? failure : { operation, reply: dependencyFailed },
    )
  }
  // An operation without a group gets its index as the key, so that it runs alone.
  for (const [key, run] of Map.groupBy(operations, ({ group }, at) => group ?? at)) {
    await wait?.()
    const done = typeof key === 'string' ? runGroup(run) : run.map(runOne)
    results.push(...done)
    const failures = done.filter(failed)
    if (failures.length === 0) continue
    for (const { operation } of failures) if (operation.id !== undefined) failedIds.add(operation.id)
    if (typeof key === 'string') failedIds.add(key)
    if (!continueOnError) break
  }
  return results
}
