import type { IncomingMessage, ServerResponse } from 'node:http'

import { AdapterError } from '../errors.ts'
import { checkHost } from '../http/host.ts'
import type { ReadAnswered } from '../observability/events.ts'
import type { MetadataLevel } from '../v2/index.ts'
import { releaseAfterReply } from './byte-budget.ts'
import type { ProxyContext } from './context.ts'
import type { Authorisation } from '../partners/partner.ts'
import type { ReadSession } from '../reads/read-upstream.ts'
import { openCallBudget } from '../upstream/index.ts'
import { untilGone } from './until-gone.ts'

/** The answer to a read. */
export interface ReadAnswer {
  readonly body: string
  /** Undefined: there is no content, 204. */
  readonly contentType: string | undefined
  /** Recorded marks in it. */
  readonly rows: number
}

/** Whose request this is. Errors: those of `checkHost` and `createAuthorise`. */
export async function authoriseRead(
  context: Pick<ProxyContext, 'authorise'>,
  request: IncomingMessage,
): Promise<Authorisation> {
  checkHost(request)
  return context.authorise(request)
}

/** What a read uses of the context. */
type ReadContext = Pick<ProxyContext, 'reads' | 'byteBudget' | 'queueKeys' | 'accepted' | 'events' | 'nowMs'>

/** What the log says of a read whose client went away. */
const CLIENT_GONE = 499

/**
 * Does one read of V3 within the partner's budget of time and answers 200 with what it gives; it ends when the client goes
 * away. Where a pace is kept, `Server-Timing` of the reply says how long the calls stood in the queue, also when it is a
 * refusal. Errors: those of `read`.
 */
export async function answerRead(
  { reads, byteBudget, queueKeys, accepted, events, nowMs }: ReadContext,
  authorisation: Authorisation,
  response: ServerResponse,
  kind: ReadAnswered['kind'],
  read: (session: ReadSession) => Promise<ReadAnswer>,
): Promise<void> {
  const { partner, credentials, renew, rateLimit } = authorisation
  const startedMs = nowMs()
  const { reader, clock } = reads
  const queueKey = queueKeys.of(authorisation)
  const held = byteBudget.open(queueKey)
  const signal = untilGone(response)
  const budget = openCallBudget({
    rateLimit,
    queueKey,
    priority: 'read',
    budgetMs: partner.budgetMs,
    clock,
    signal,
  })
  const onAccepted = (): void => {
    queueKeys.accept(authorisation)
    accepted.accept(authorisation)
  }
  const session: ReadSession = { reader, queueKey, credentials, renew, budget, signal, onAccepted, pages: 0 }
  const finish = (status: number, rows: number): void => {
    const queuedMs = budget.queuedMs()
    if (rateLimit !== undefined) response.setHeader('Server-Timing', `queue;dur=${queuedMs}`)
    const { pages } = session
    events.readAnswered({
      partner: partner.id,
      kind,
      status,
      rows,
      pages,
      durationMs: nowMs() - startedMs,
      queuedMs,
    })
  }
  try {
    const { body, contentType, rows } = await read(session)
    held.take(Buffer.byteLength(body))
    finish(contentType === undefined ? 204 : 200, rows)
    sendRead(response, body, contentType)
  } catch (cause) {
    const status = cause instanceof AdapterError ? cause.status : 500
    finish(signal.aborted ? CLIENT_GONE : status, 0)
    throw cause
  } finally {
    releaseAfterReply(held, response)
  }
}

/** The raw query of a request, without `?`. */
export function queryOf(request: IncomingMessage): string {
  const url = request.url ?? ''
  const at = url.indexOf('?')
  return at < 0 ? '' : url.slice(at + 1)
}

/** The media type of JSON with annotations of this level. */
export function jsonType(metadata: MetadataLevel): string {
  return `application/json; odata.metadata=${metadata}`
}

/** Answers 200 in the way of an OData 4.0 service, or 204 where nothing has a media type. */
export function sendRead(response: ServerResponse, body: string, contentType: string | undefined): void {
  if (contentType === undefined) {
    response.writeHead(204, { 'OData-Version': '4.0' })
    response.end()
    return
  }
  response.writeHead(200, {
    'Content-Type': contentType,
    'Content-Length': Buffer.byteLength(body),
    'OData-Version': '4.0',
  })
  response.end(body)
}
