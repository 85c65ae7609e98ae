import type { IncomingMessage, ServerResponse } from 'node:http'

import type { Events, PassedThrough } from '../observability/events.ts'
import { readRetryAfter, retryWaitMs, type QueueKey } from '../upstream/index.ts'
import type { V3Credentials } from '../v3/index.ts'
import type { Clock } from '../clock.ts'
import type { AcceptedCredentials } from '../partners/accepted-credentials.ts'
import { addedCredentials } from './added-credentials.ts'
import type { HeldBytes } from './byte-budget.ts'
import type { Authorisation } from '../partners/partner.ts'
import { openCallBudget, type CallBudget } from '../upstream/index.ts'
import { untilGone } from './until-gone.ts'

/** One request that is passed through to V3. */
export interface ProxiedRequest {
  /** Reports the request as it ended, once; called when the connection of its reply closes, if not before. */
  finish(): void
  /** The client that it is for. */
  readonly queueKey: QueueKey
  /** The bytes of its body that wait for a connection. */
  readonly held: HeldBytes
  readonly budget: CallBudget
  /** Credentials of the calls that are not the client's own. */
  readonly added: readonly string[]
  /** Aborts when the client has gone. */
  readonly signal: AbortSignal
  /** Pauses the key's calls, as the service asked with this reply (429), for the budget of a request at the most. */
  holdBack(retryAfter: string | undefined): void
  /**
   * What to do about a reply of 401: credentials to send the request with once more; undefined: the 401 is the client's. The
   * token of a request that cannot be sent again is renewed for the next one.
   */
  renew(): Promise<V3Credentials> | undefined
}

export interface ProxiedRequestOptions {
  readonly events: Events
  readonly accepted: AcceptedCredentials
  readonly clock: Clock
  /** Milliseconds since the epoch. */
  readonly nowMs: () => number
}

/** A request that was authorised. */
interface Incoming {
  readonly queueKey: QueueKey
  readonly held: HeldBytes
  readonly authorisation: Authorisation
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

const methods = ['GET', 'HEAD', 'OPTIONS', 'POST', 'PUT', 'PATCH', 'DELETE'] as const
/** What the log says of a client that went away before the answer. */
const CLIENT_GONE = 499

/** Opens a request: its calls, what its reply means for others, and the event at its end. */
export function openProxiedRequest(
  { events, accepted, clock, nowMs }: ProxiedRequestOptions,
  { queueKey, held, authorisation, request, response }: Incoming,
): ProxiedRequest {
  const { partner, rateLimit, renew, credentials, client } = authorisation
  const startedMs = nowMs()
  const { headers } = request
  const method: PassedThrough['method'] = methods.find((one) => one === request.method) ?? 'other'
  const isRead = method === 'GET' || method === 'HEAD'
  const hasBody = headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
  const signal = untilGone(response)
  const priority = isRead ? 'read' : 'write'
  const budget = openCallBudget({ rateLimit, queueKey, priority, budgetMs: partner.budgetMs, clock, signal })
  let mayRenew = renew
  const added = addedCredentials(credentials, client)
  let isOver = false
  const finish = (): void => {
    if (isOver) return
    isOver = true
    if (isAcceptance(response, request.url)) accepted.accept(authorisation)
    events.passedThrough({
      partner: partner.id,
      method,
      status: response.headersSent ? response.statusCode : CLIENT_GONE,
      durationMs: nowMs() - startedMs,
      queuedMs: budget.queuedMs(),
    })
  }
  signal.addEventListener('abort', finish)
  return {
    finish,
    queueKey,
    held,
    budget,
    added,
    signal,
    holdBack: (retryAfter) => {
      const retryAfterMs = readRetryAfter(retryAfter, '', nowMs())
      const waitMs = retryWaitMs({ kind: 'notApplied', reason: 'throttled', retryAfterMs }, 0)
      if (waitMs !== undefined) rateLimit?.pauseFor(Math.min(waitMs, partner.budgetMs))
    },
    renew: () => {
      const renewed = mayRenew?.().then((own) => {
        added.push(...addedCredentials(own, client))
        return own
      })
      mayRenew = undefined
      if (renewed === undefined || (isRead && !hasBody)) return renewed
      renewed.catch(() => undefined) // the next request asks again, and is told
      return undefined
    },
  }
}

/** True for a reply that the service gives to a token that it accepts; metadata may be there for everybody. */
function isAcceptance({ headersSent, statusCode }: ServerResponse, url = ''): boolean {
  return headersSent && statusCode >= 200 && statusCode < 300 && !/(?:\$|%24)metadata/i.test(url)
}
