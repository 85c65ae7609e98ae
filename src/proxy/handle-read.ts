import type { ServerResponse } from 'node:http'

import type { WireReply } from '../compare/wire-exchange.ts'
import { AdapterError } from '../errors.ts'
import { closeSignal } from '../http/server.ts'
import type { ReadAnswered } from '../observability/events.ts'
import { ownDenialOf } from '../partners/credentials.ts'
import type { Authorisation } from '../partners/partner.ts'
import { readField, readMark } from '../reads/read-mark.ts'
import { countMarks, readPage } from '../reads/read-page.ts'
import { jsonType, type ReadAnswer, type ReadContext, type ReadRequest } from '../reads/read-request.ts'
import type { ReadSession } from '../reads/read-upstream.ts'
import {
  hasKey,
  readGuidKey,
  toV3RegistrationQuery,
  writeLegacyMetadata,
  writeLegacyServiceDocument,
} from '../translate/index.ts'
import { openCallBudget } from '../upstream/index.ts'
import { readPreferences } from '../v2/index.ts'
import { releaseAfterReply } from './byte-budget.ts'
import type { Handle } from './context.ts'
import type { Exchange } from './exchange.ts'
import { addressOf, nextAddressOf, serviceRoot } from './requested-address.ts'

type Read = (
  context: ReadContext,
  client: Authorisation,
  request: ReadRequest,
  session: ReadSession,
) => Promise<ReadAnswer>

/** Handles `GET …/V2/Attendance/AttendanceRecords?$filter=…`. */
export const handleReadPage = createReadHandler('collection', readPage)
/** Handles `GET …/V2/Attendance/AttendanceRecords/$count?$filter=…`. */
export const handleReadCount = createReadHandler('collection', countMarks)
/** Handles `GET …/V2/Attendance/AttendanceRecords(<id>)`. */
export const handleReadMark = createReadHandler('record', readMark)
/** Handles `GET …/V2/Attendance/AttendanceRecords(<id>)/<field>`. */
export const handleReadField = createReadHandler('record', readField)

const CLIENT_GONE = 499

/**
 * Creates a handler that stops when the partner's time budget is used up or the client disconnects. If calls have a rate limit,
 * `Server-Timing` says how long they waited in the queue, also in an error reply. Throws the errors of `read`.
 */
function createReadHandler(kind: ReadAnswered['kind'], read: Read): Handle {
  return async (context, exchange, authorisation) => {
    const { reads, byteBudget, accepted, events, nowMs } = context
    const { response, receivedMs, copyBytes, result } = exchange
    const { partner, credentials, renew, rateLimit } = authorisation
    const { reader, clock } = reads
    const queueKey = accepted.queueKey(authorisation)
    const held = byteBudget.open(queueKey)
    const signal = closeSignal(response)
    const priority = 'read'
    const { budgetMs } = partner
    const budget = openCallBudget({ rateLimit, queueKey, priority, budgetMs, clock, signal: () => signal })
    const session: ReadSession = {
      reader,
      queueKey,
      credentials,
      renew,
      budget,
      signal,
      onAccepted: () => accepted.accept(authorisation),
      ownDenial: (error) => ownDenialOf(accepted, partner, error),
      pages: 0,
    }
    const finish = (status: number, rows: number): void => {
      const queuedMs = budget.queuedMs()
      if (rateLimit !== undefined) response.setHeader('Server-Timing', `queue;dur=${queuedMs}`)
      const { pages } = session
      const durationMs = nowMs() - receivedMs
      events.readAnswered({ partner: partner.id, kind, status, rows, pages, durationMs, queuedMs })
    }
    try {
      const { body, contentType, rows } = await read(
        reads,
        authorisation,
        toReadRequest(reads, exchange),
        session,
      )
      held.take(lengthOf(body))
      finish(contentType === undefined ? 204 : 200, rows)
      sendRead(response, body, contentType)
      if (copyBytes > 0) result.outcome = { kind: 'read', reply: toCopy(body, contentType, copyBytes) }
    } catch (cause) {
      const status = cause instanceof AdapterError ? cause.status : 500
      finish(signal.aborted ? CLIENT_GONE : status, 0)
      throw cause
    } finally {
      releaseAfterReply(held, response)
    }
  }
}

function toCopy(pieces: readonly string[], contentType: string | undefined, maxBytes: number): WireReply {
  const body = Buffer.from(pieces.join(''))
  const status = contentType === undefined ? 204 : 200
  return { status, reason: '', fields: [], body: body.length > maxBytes ? undefined : body }
}

function toReadRequest(reads: ReadContext, exchange: Exchange): ReadRequest {
  const { request, target } = exchange
  const { accept, prefer } = request.headers
  return {
    path: target.path,
    query: target.query.slice(1),
    address: addressOf(request),
    nextAddress: nextAddressOf(reads, exchange),
    accept: accept ?? '',
    prefer: [prefer ?? []].flat().join(),
  }
}

/** Sends a 200 with the body, or a 204 if `contentType` is `undefined`, each with the version header of OData 4.0. */
function sendRead(response: ServerResponse, body: readonly string[], contentType: string | undefined): void {
  if (contentType === undefined) {
    response.writeHead(204, { 'OData-Version': '4.0' })
    response.end()
    return
  }
  response.writeHead(200, {
    'Content-Type': contentType,
    'Content-Length': lengthOf(body),
    'OData-Version': '4.0',
  })
  // Writes the pieces one by one, because joining them would copy the whole page.
  for (const piece of body) response.write(piece)
  response.end()
}

const lengthOf = (body: readonly string[]): number =>
  body.reduce((bytes, piece) => bytes + Buffer.byteLength(piece), 0)

/** Handles `GET …/V2/Attendance/$metadata` with the flat type of V2, because the metadata of V3 has other fields. */
export const handleReadMetadata: Handle = (_context, exchange) => {
  // `Accept` is ignored (RFC 9110 12.5.1), because clients send the same value as for data.
  if (!/^(application\/)?xml$/i.test(formatOf(exchange) ?? 'xml'))
    throw new AdapterError(
      'ADP_NOT_ACCEPTABLE',
      '$metadata is available only as application/xml. Nothing was read. Leave out $format.',
    )
  sendRead(exchange.response, [writeLegacyMetadata()], 'application/xml')
}

function formatOf({ target }: Exchange): string | undefined {
  const query = new URLSearchParams(target.query)
  return query.get('$format') ?? query.get('format') ?? undefined
}

export const handleReadServiceDocument: Handle = (_context, exchange) => {
  const { request, response } = exchange
  const root = addressOf(request).replace(/\/$/, '')
  const { metadata } = readPreferences('', formatOf(exchange) ?? request.headers.accept ?? '')
  const url = metadata === 'none' ? undefined : `${root}/$metadata`
  sendRead(response, [writeLegacyServiceDocument(url)], jsonType(metadata))
}

/**
 * Handles `GET …/V2/LearnerRegistations` (misspelt in service.md 1.1) and its correct spelling, with or without a key, and the paths below
 * it. The request is passed through to V3's `LearnerRegistrations`, with `$expand` written for V3. The pass-through list must contain the
 * path. Links in the reply lead back to the client's own path.
 */
export const handleReadRegistrations: Handle = async ({ passThrough, reads }, exchange, authorisation) => {
  const { request, response, target, result } = exchange
  const query = toV3RegistrationQuery(target.query.slice(1))
  const { path, rawPath } = target
  const segments = path.replace(/\/$/, '').split('/')
  const at = segments.findLastIndex((segment) => REGISTRATIONS.test(segment))
  const rawSegments = rawPath.split('/')
  const root = serviceRoot(request, rawSegments.slice(0, at).join('/'))
  const below = rawSegments.slice(at + 1, segments.length)
  const resource = [`/V3/LearnerRegistrations${keyOf(segments[at] ?? '')}`, ...below].join('/')
  // As in V2, next links lead to the requested path, and ids and contexts to the entity set.
  const isEntity = hasKey(segments[at] ?? '') && below.length === 0
  const links = [
    ...(isEntity ? [] : [{ from: resource, to: addressOf(request), nextTo: nextAddressOf(reads, exchange) }]),
    { from: '/V3', to: root },
  ]
  request.url = `${resource}${query === '' ? '' : `?${query}`}`
  await passThrough.handle(request, response, authorisation, links, true)
  result.outcome = { kind: 'read', reply: undefined }
}

const REGISTRATIONS = /^learnerregistr?ations(?:\(|$)/i

/** Returns the key of a path segment in V3's form, or an empty string if there is none. Throws `ADP_NOT_FOUND` if the key is not a GUID. */
function keyOf(segment: string): string {
  if (!hasKey(segment)) return ''
  const id = readGuidKey(segment)
  if (id === undefined)
    throw new AdapterError(
      'ADP_NOT_FOUND',
      'There is no learner registration with this key. Nothing was read. Use the id of the registration as the key.',
    )
  return `(${id})`
}
