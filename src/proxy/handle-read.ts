import type { ServerResponse } from 'node:http'

import type { OfferedReply } from '../compare/live/index.ts'
import { AdapterError } from '../errors.ts'
import type { ReadAnswered } from '../observability/events.ts'
import { ownDenialOf } from '../partners/index.ts'
import type { Authorisation } from '../partners/partner.ts'
import {
  countMarks,
  type ReadAnswer,
  type ReadContext,
  readField,
  readMark,
  readPage,
  type ReadRequest,
  type ReadSession,
} from '../reads/index.ts'
import { openCallBudget } from '../upstream/index.ts'
import { releaseAfterReply } from './byte-budget.ts'
import type { Exchange, Handle } from './exchange.ts'
import { addressOf, nextAddressOf } from './requested-address.ts'
import { untilGone } from './until-gone.ts'

/** One kind of read of the engine. */
type Read = (
  context: ReadContext,
  client: Authorisation,
  request: ReadRequest,
  session: ReadSession,
) => Promise<ReadAnswer>

/** `GET …/V2/Attendance/AttendanceRecords?$filter=…`. */
export const handleReadPage = createReadHandler('collection', readPage)
/** `GET …/V2/Attendance/AttendanceRecords/$count?$filter=…`. */
export const handleReadCount = createReadHandler('collection', countMarks)
/** `GET …/V2/Attendance/AttendanceRecords(<id>)`. */
export const handleReadMark = createReadHandler('record', readMark)
/** `GET …/V2/Attendance/AttendanceRecords(<id>)/<field>`. */
export const handleReadField = createReadHandler('record', readField)

/** The status in the log of a read whose client disconnected. */
const CLIENT_GONE = 499

/**
 * Creates the handler of one kind of read: within the partner's budget of time, and until the client goes away. Where calls are
 * limited, `Server-Timing` of the reply says how long they stood in the queue, also when it is a refusal. Errors: those of `read`.
 */
function createReadHandler(kind: ReadAnswered['kind'], read: Read): Handle {
  return async (context, exchange, authorisation) => {
    const { reads, byteBudget, queueKeys, accepted, events, nowMs } = context
    const { response, receivedMs, observer } = exchange
    const { partner, credentials, renew, rateLimit } = authorisation
    const { reader, clock } = reads
    const queueKey = queueKeys.of(authorisation)
    const held = byteBudget.open(queueKey)
    const signal = untilGone(response)
    const priority = 'read'
    const { budgetMs } = partner
    const budget = openCallBudget({ rateLimit, queueKey, priority, budgetMs, clock, signal: () => signal })
    const onAccepted = (): void => {
      queueKeys.accept(authorisation)
      accepted.accept(authorisation)
    }
    const session: ReadSession = {
      reader,
      queueKey,
      credentials,
      renew,
      budget,
      signal,
      onAccepted,
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
      if (observer.copyBytes > 0)
        await observer.replied({ kind: 'read', reply: toCopy(body, contentType, observer.copyBytes) })
    } catch (cause) {
      const status = cause instanceof AdapterError ? cause.status : 500
      finish(signal.aborted ? CLIENT_GONE : status, 0)
      throw cause
    } finally {
      releaseAfterReply(held, response)
    }
  }
}

function toCopy(pieces: readonly string[], contentType: string | undefined, maxBytes: number): OfferedReply {
  const body = Buffer.from(pieces.join(''))
  const status = contentType === undefined ? 204 : 200
  return { status, fields: [], body: body.length > maxBytes ? undefined : body }
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

/** Answers 200 in the way of an OData 4.0 service, or 204 where nothing has a media type; `body` in pieces. */
export function sendRead(
  response: ServerResponse,
  body: readonly string[],
  contentType: string | undefined,
): void {
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
  // Piece by piece: a string of a whole page would be copied once more before it is written.
  for (const piece of body) response.write(piece)
  response.end()
}

/** The length of a body in bytes. */
const lengthOf = (body: readonly string[]): number =>
  body.reduce((bytes, piece) => bytes + Buffer.byteLength(piece), 0)
