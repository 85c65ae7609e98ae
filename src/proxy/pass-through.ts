import type { IncomingMessage, ServerResponse } from 'node:http'

import { AdapterError } from '../errors.ts'
import { isFramed } from '../http/body.ts'
import { closeSignal } from '../http/server.ts'
import type { PassedThrough } from '../observability/events.ts'
import { type AcceptedCredentials, ownDenialOf } from '../partners/credentials.ts'
import type { Authorisation } from '../partners/partner.ts'
import { openCallBudget, readRetryAfter, retryWaitMs } from '../upstream/index.ts'
import { readUpstreamError, type V3Credentials } from '../v3/index.ts'
import {
  type AllowedPath,
  createAllowedMethods,
  createBatchCheck,
  readMethods,
  refuseMethod,
  showsAcceptance,
} from './allowed-paths.ts'
import { addedCredentials } from './forwarded-fields.ts'
import { createForwarder, type ForwarderOptions, type ForwardOutcome } from './forwarder.ts'
import type { LinkRewriting } from './link-rewriter.ts'
import { serviceRoot } from './requested-address.ts'

interface PassThroughOptions extends Omit<ForwarderOptions, 'outcomeUnknown' | 'arrivalMs'> {
  /** The paths that are forwarded. All other paths are refused. */
  readonly allow: readonly AllowedPath[]
  /** True to rewrite absolute links of the upstream in JSON bodies to the adapter's address. */
  readonly rewriteLinks: boolean
  readonly accepted: AcceptedCredentials
  readonly nowMs: () => number
}

export type PassThrough = ReturnType<typeof createPassThrough>

const methods = ['GET', 'HEAD', 'OPTIONS', 'POST', 'PUT', 'PATCH', 'DELETE'] as const
const CLIENT_GONE = 499

/**
 * Creates the pass-through, which forwards requests to V3 unchanged, with the partner's credentials. If V3 answers 401 to a token of the
 * adapter, the token is renewed. A GET or HEAD without a body is then sent once more. Any other request is not repeated, and its client
 * gets 502 `ADP_V3_CREDENTIALS`.
 */
export function createPassThrough(options: PassThroughOptions) {
  const { accepted, events, clock, nowMs } = options
  const forwarder = createForwarder({
    ...options,
    outcomeUnknown: 'ADP_OUTCOME_UNKNOWN',
    arrivalMs: undefined,
  })
  const methodsOf = createAllowedMethods(options.allow)

  /**
   * Throws `ADP_V3_CREDENTIALS` if V3 denied the adapter's own credentials. Otherwise sends V3's 401 to the client, because the client can
   * correct its credentials.
   */
  const answerDenial = (
    { partner }: Authorisation,
    { status, body, pass }: Extract<ForwardOutcome, { kind: 'intercepted' }>,
  ): void => {
    const own = ownDenialOf(accepted, partner, readUpstreamError(status, body.toString('utf8')))
    if (own !== undefined) throw own
    pass()
  }
  /** Pauses all calls with the subscription key after a 429, at most for the partner's time budget. */
  const holdBack = ({ rateLimit, partner }: Authorisation, retryAfter: string | undefined): void => {
    const retryAfterMs = readRetryAfter(retryAfter, '', nowMs())
    const waitMs = retryWaitMs({ reason: 'throttled', retryAfterMs }, 0)
    if (waitMs !== undefined) rateLimit?.pauseFor(Math.min(waitMs, partner.budgetMs))
  }
  return {
    /** Checks the method of a request. Throws `ADP_METHOD_NOT_ALLOWED` if the path does not accept it. */
    checkMethod: (request: IncomingMessage, response: ServerResponse): void => {
      const allowed = methodsOf(request) ?? readMethods
      if (!allowed.includes(request.method ?? '')) throw refuseMethod(request, response, allowed)
    },
    /**
     * Serves an authorised request under its rate limit: GET and HEAD as reads, other methods as writes. `links` maps paths of V3 to
     * addresses of the adapter. The first matching entry applies, and a link without an entry keeps its path. `queryRewritten` is true if
     * the query differs from the client's, so that errors must not name a position in it. Throws `ADP_NOT_FOUND` for a path that is not
     * on the list, `ADP_PATH` for an unreadable path, and the errors of `createBatchCheck`. Throws `ADP_BUDGET_EXCEEDED` or
     * `ADP_OVERLOADED` (503) if the request would wait too long.
     */
    handle: async (
      request: IncomingMessage,
      response: ServerResponse,
      authorisation: Authorisation,
      links: readonly LinkRewriting[] = [],
      queryRewritten = false,
    ): Promise<void> => {
      if (methodsOf(request) === undefined)
        throw new AdapterError(
          'ADP_NOT_FOUND',
          'This path is not served. Nothing was sent. To serve it, add it to passThrough.allow in the configuration.',
        )
      const checkBody = createBatchCheck(request)
      const { partner, client, renew } = authorisation
      const startedMs = nowMs()
      const method: PassedThrough['method'] = methods.find((one) => one === request.method) ?? 'other'
      const isRead = method === 'GET' || method === 'HEAD'
      const queueKey = accepted.queueKey(authorisation)
      const budget = openCallBudget({
        rateLimit: authorisation.rateLimit,
        queueKey,
        priority: isRead ? 'read' : 'write',
        budgetMs: partner.budgetMs,
        clock,
        signal: () => closeSignal(response),
      })
      let isReported = false
      const report = (): void => {
        if (isReported) return
        isReported = true
        events.passedThrough({
          partner: partner.id,
          method,
          status: response.headersSent ? response.statusCode : CLIENT_GONE,
          durationMs: nowMs() - startedMs,
          queuedMs: budget.queuedMs(),
        })
      }
      response.once('close', report)
      const withheld: string[] = []
      const forward = (credentials: V3Credentials): Promise<ForwardOutcome> => {
        withheld.push(...addedCredentials(credentials, client))
        return forwarder.forward(request, response, {
          queueKey,
          budget,
          credentials,
          withheld,
          checkBody,
          queryRewritten,
          links: options.rewriteLinks ? [...links, { from: '', to: serviceRoot(request, '') }] : undefined,
          intercepts401: partner.subscriptionKey !== undefined || partner.tokens !== undefined,
          onReplyHead: ({ status, fields }) => {
            if (status === 429) holdBack(authorisation, fields.one('retry-after'))
            if (showsAcceptance(request, status)) accepted.accept(authorisation)
          },
        })
      }
      let outcome = await forward(authorisation.credentials)
      const renewed = outcome.kind === 'intercepted' ? renew?.() : undefined
      if (renewed !== undefined && isRead && !isFramed(request)) outcome = await forward(await renewed)
      else renewed?.catch(() => undefined) // Ignored, because the next request renews the token again and gets the error.
      if (outcome.kind === 'intercepted') answerDenial(authorisation, outcome)
      else if (outcome.kind === 'brokenReply') report()
    },
    held: (): number => forwarder.held(),
    close: (): Promise<void> => forwarder.close(),
  }
}
