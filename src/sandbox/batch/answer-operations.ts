import { randomUUID } from 'node:crypto'
import { STATUS_CODES } from 'node:http'
import { AdapterError } from '../../errors.ts'
import { faultReply } from '../edge/refusals.ts'
import { jsonReply, odataError } from '../edge/reply.ts'
import type { Reply } from '../edge/reply.ts'
import type { Route, ServiceRequest } from '../edge/request.ts'
import type { Operation, OperationResult } from './operation.ts'
import { operationTarget } from './operation.ts'
import { readJsonBatch } from './read-json-batch.ts'
import { readMultipart } from './read-multipart.ts'
import { runOperations } from './run-operations.ts'

/** The environment of a V3 batch. */
export interface BatchParts {
  /** Answers a single request. */
  readonly service: (request: ServiceRequest) => Reply
  /** Runs `work` and undoes everything it wrote unless it returns true; returns what `work` returned. */
  readonly attempt: (work: () => boolean) => boolean
  /** The answer that a fault gives in place of the service; undefined: none strikes. */
  readonly disturb: (method: string, path: string) => Reply | undefined
}

/** Beyond it the reads of a batch are refused: 20,000 of them could ask for gigabytes. Writes have small answers. */
const maxAnswerBytes = 33_554_432
const tooMuch = odataError(
  413,
  'PayloadTooLarge',
  'The answers of the batch are too large to be sent together.',
)

/**
 * Answers `POST …/V3/$batch`, whose format the service announced and never showed (service-facts 3): both formats of OData
 * 4.01, multipart and JSON. Errors: `AdapterError` for a batch that cannot be read; nothing is applied then.
 */
export function answerOperations(parts: BatchParts, route: Route, request: ServiceRequest): Reply {
  const contentType = request.header('content-type')
  const isJson = /^application\/json\b/i.test(contentType ?? '')
  const operations = isJson
    ? readJsonBatch(request.body.toString('utf8'))
    : readMultipart(request.body, contentType)
  const continueOnError = /continue-on-error(?!\s*=\s*false)/i.test(request.header('prefer') ?? '')
  let answerBytes = 0
  const execute = (operation: Operation): Reply => {
    if (operation.method === 'GET' && answerBytes > maxAnswerBytes) return tooMuch
    const reply = executeOne(parts, route, request, operation)
    answerBytes += reply.body.length
    return reply
  }
  const results = runOperations(operations, { execute, attempt: parts.attempt, continueOnError })
  return isJson ? writeJson(results) : writeMultipart(results)
}

function executeOne(
  { service, disturb }: BatchParts,
  route: Route,
  outer: ServiceRequest,
  operation: Operation,
): Reply {
  const { path, query } = operationTarget(operation.url, route.root)
  const struck = disturb(operation.method, path)
  if (struck !== undefined) return struck
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
  const leave = (): void => {
    if (inner !== undefined) text += `--${inner}--\r\n`
    inner = undefined
  }
  for (const { operation, reply } of withoutFailedGroups(results)) {
    if (operation.group !== group || inner === undefined) leave()
    group = operation.group
    if (group !== undefined && inner === undefined && reply.status < 400) {
      inner = `changesetresponse_${randomUUID()}`
      text += `--${boundary}\r\nContent-Type: multipart/mixed; boundary=${inner}\r\n\r\n`
    }
    text += writePart(inner ?? boundary, operation, reply)
  }
  leave()
  const headers = { 'Content-Type': `multipart/mixed; boundary=${boundary}`, 'OData-Version': '4.0' }
  return { status: 200, headers, body: `${text}--${boundary}--\r\n` }
}

/** A changeset that failed is answered by one response, that of the request which failed (OData protocol 11.7.7.4). */
function withoutFailedGroups(results: readonly OperationResult[]): OperationResult[] {
  return results.filter(({ operation, reply }) => operation.group === undefined || reply.status !== 424)
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
