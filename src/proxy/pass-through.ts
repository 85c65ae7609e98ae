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
  /** Everything else is not served. */
  readonly allow: readonly AllowedPath[]
  /** Turn the upstream's absolute links in JSON bodies into the adapter's. */
  readonly rewriteLinks: boolean
  readonly accepted: AcceptedCredentials
  /** Milliseconds since the epoch. */
  readonly nowMs: () => number
}

export type PassThrough = ReturnType<typeof createPassThrough>

const methods = ['GET', 'HEAD', 'OPTIONS', 'POST', 'PUT', 'PATCH', 'DELETE'] as const
/** The status in the log of a client that disconnected before the reply. */
const CLIENT_GONE = 499

/**
 * Creates the pass-through: requests go to V3 unchanged, with the partner's credentials. A 401 to a token of the adapter's own
 * renews it: a GET or HEAD without a body then goes out once more, any other request is answered with 502 `ADP_V3_CREDENTIALS`,
 * since its body has been streamed.
 */
export function createPassThrough(options: PassThroughOptions) {
  const { accepted, events, clock, nowMs } = options
  const forwarder = createForwarder({
    ...options,
    outcomeUnknown: 'ADP_OUTCOME_UNKNOWN',
    arrivalMs: undefined,
  })
  const methodsOf = createAllowedMethods(options.allow)

  /** Answers a denial: where it is of what the adapter has lent, the client cannot mend it. */
  const answerDenial = (
    { partner }: Authorisation,
    { status, body, pass }: Extract<ForwardOutcome, { kind: 'intercepted' }>,
  ): void => {
    const own = ownDenialOf(accepted, partner, readUpstreamError(status, body.toString('utf8')))
    if (own !== undefined) throw own
    pass()
  }
  /** Pauses the key's calls, as the service asked with a 429, for the budget of a request at the most. */
  const holdBack = ({ rateLimit, partner }: Authorisation, retryAfter: string | undefined): void => {
    const retryAfterMs = readRetryAfter(retryAfter, '', nowMs())
    const waitMs = retryWaitMs({ reason: 'throttled', retryAfterMs }, 0)
    if (waitMs !== undefined) rateLimit?.pauseFor(Math.min(waitMs, partner.budgetMs))
  }
  return {
    /** Error `ADP_METHOD_NOT_ALLOWED` for a method that the path does not take. */
    checkMethod: (request: IncomingMessage, response: ServerResponse): void => {
      const allowed = methodsOf(request) ?? readMethods
      if (!allowed.includes(request.method ?? '')) throw refuseMethod(request, response, allowed)
    },
    /**
     * Serves an authorised request under its rate limit, GET and HEAD as reads, others as writes. `links` turns paths of V3 into
     * addresses of the adapter, the first that fits; by default a link keeps its path. `queryRewritten`: the query is not as the client
     * wrote it, so an error names no place in it. Errors: `ADP_NOT_FOUND` or `ADP_PATH` for
     * what is not on the list, `ADP_BUDGET_EXCEEDED` or `ADP_OVERLOADED` (503) for what would wait too long.
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
          'This path is not served: passThrough.allow of the configuration does not list it.',
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
      else renewed?.catch(() => undefined) // the next request asks again, and gets the error
      if (outcome.kind === 'intercepted') answerDenial(authorisation, outcome)
      else if (outcome.kind === 'brokenReply') report()
    },
    /** Connections in use. */
    held: (): number => forwarder.held(),
    close: (): Promise<void> => forwarder.close(),
  }
}
