import type { IncomingMessage, ServerResponse } from 'node:http'

import type { Clock } from '../clock.ts'
import { Pieces } from '../http/pieces.ts'
import type { Events, PassedThrough } from '../observability/events.ts'
import type { AcceptedCredentials } from '../partners/accepted-credentials.ts'
import { ownDenialOf } from '../partners/own-denial.ts'
import type { Authorisation } from '../partners/partner.ts'
import type { QueueKeys } from '../partners/queue-keys.ts'
import {
  type CallBudget,
  type CallFailure,
  openCallBudget,
  type QueueKey,
  readRetryAfter,
  type ReplyHead,
  type ReplySink,
  retryWaitMs,
  type StreamCall,
} from '../upstream/index.ts'
import { readUpstreamError, type V3Credentials } from '../v3/index.ts'
import { showsAcceptance } from './acceptance.ts'
import { addedCredentials } from './added-credentials.ts'
import { sendError } from './error-reply.ts'
import type { LinkRewriter } from './link-rewriter.ts'
import { lossOf } from './lost-request.ts'
import { ReplyRelay } from './relay-reply.ts'
import { GONE } from './until-gone.ts'

export interface ProxiedRequestOptions {
  readonly events: Events
  readonly accepted: AcceptedCredentials
  readonly queueKeys: QueueKeys
  readonly clock: Clock
  /** Milliseconds since the epoch. */
  readonly nowMs: () => number
}

/** A request that was authorised. */
export interface Incoming {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly authorisation: Authorisation
  /** Undefined: links of the reply stay as they are. */
  readonly createRewriter: (() => LinkRewriter) | undefined
  /** Sends it once more, with these credentials. */
  readonly sendAgain: (proxied: ProxiedRequest, credentials: Promise<V3Credentials>) => void
}

interface Denial {
  readonly head: ReplyHead
  readonly body: Pieces
}

/** A longer reply is no error of the gateway. */
const MAX_DENIAL_BYTES = 65_536
const methods = ['GET', 'HEAD', 'OPTIONS', 'POST', 'PUT', 'PATCH', 'DELETE'] as const
/** The status in the log of a client that disconnected before the reply. */
const CLIENT_GONE = 499

/**
 * One request that is passed through to V3: where its reply goes, what that means for others with the same key or token, and
 * the line in the log at its end.
 */
export class ProxiedRequest implements ReplySink {
  readonly queueKey: QueueKey
  readonly budget: CallBudget
  readonly incoming: Incoming
  /** The call that is under way for it, and what gives the place of that call back. */
  call: StreamCall | undefined
  leave: (() => void) | undefined
  private readonly options: ProxiedRequestOptions
  private readonly method: PassedThrough['method']
  private readonly startedMs: number
  /** Credentials of the calls that are not the client's own. */
  private readonly added: string[]
  private relay: ReplyRelay | undefined
  /** The reply of a service that may deny what the adapter has lent. */
  private denial: Denial | undefined
  private renewed: Promise<V3Credentials> | undefined
  private mayRenew: Authorisation['renew']
  private gone: AbortController | undefined
  private isReported = false

  constructor(options: ProxiedRequestOptions, incoming: Incoming) {
    const { request, response, authorisation } = incoming
    this.options = options
    this.incoming = incoming
    this.startedMs = options.nowMs()
    this.method = methods.find((one) => one === request.method) ?? 'other'
    this.queueKey = options.queueKeys.of(authorisation)
    this.added = addedCredentials(authorisation.credentials, authorisation.client)
    this.mayRenew = authorisation.renew
    this.budget = openCallBudget({
      rateLimit: authorisation.rateLimit,
      queueKey: this.queueKey,
      priority: this.isRead() ? 'read' : 'write',
      budgetMs: authorisation.partner.budgetMs,
      clock: options.clock,
      signal: () => this.signal(),
    })
    response.once('close', () => {
      this.report()
      this.gone?.abort(GONE)
      this.call?.abort()
    })
  }

  /** Aborts when the client has gone. */
  signal(): AbortSignal {
    this.gone ??= new AbortController()
    if (this.incoming.response.destroyed) this.gone.abort(GONE)
    return this.gone.signal
  }

  onHead(head: ReplyHead): void {
    const { request, authorisation } = this.incoming
    if (head.status === 429) this.holdBack(head.headers['retry-after'])
    if (showsAcceptance(request, head.status)) {
      this.options.queueKeys.accept(authorisation)
      this.options.accepted.accept(authorisation)
    }
    if (head.status === 401) this.renewed = this.renew()
    if (this.renewed !== undefined) return
    const { subscriptionKey, tokens } = authorisation.partner
    const isLent = subscriptionKey !== undefined || tokens !== undefined
    if (isLent && head.status === 401) this.denial = { head, body: new Pieces() }
    else this.startRelay(head)
  }

  private startRelay(head: ReplyHead): void {
    const { response, createRewriter } = this.incoming
    this.relay = new ReplyRelay(response, {
      added: this.added,
      createRewriter,
      onDrain: () => this.call?.resume(),
    })
    this.relay.start(head)
  }

  onData(chunk: Buffer): boolean {
    const { denial } = this
    if (denial !== undefined) {
      denial.body.add(chunk)
      if (denial.body.size <= MAX_DENIAL_BYTES) return true
      return this.passDenial(denial)
    }
    return this.relay === undefined || this.relay.data(chunk)
  }

  onEnd(): void {
    this.leave?.()
    if (this.denial !== undefined) this.judge(this.denial)
    if (this.renewed === undefined) this.relay?.end()
    else this.sendAgain(this.renewed)
  }

  /** Answers a denial: where it is of what the adapter has lent, the client cannot mend it. */
  private judge(denial: Denial): void {
    const { response, authorisation } = this.incoming
    const { partner } = authorisation
    const said = readUpstreamError(denial.head.status, denial.body.join().toString('utf8'))
    const own = ownDenialOf(this.options.accepted, partner, said)
    if (own === undefined) this.passDenial(denial)
    else if (!response.destroyed) sendError(response, own, this.options.events, partner.id)
  }

  private passDenial({ head, body }: Denial): boolean {
    this.denial = undefined
    this.startRelay(head)
    return body.size === 0 || this.relay?.data(body.join()) !== false
  }

  onFailure({ sent, cause }: CallFailure): void {
    this.leave?.()
    if (this.renewed !== undefined) this.sendAgain(this.renewed)
    else this.fail(sent, cause)
  }

  private sendAgain(credentials: Promise<V3Credentials>): void {
    this.renewed = undefined
    this.incoming.sendAgain(this, credentials)
  }

  private fail(sent: boolean, cause: Error): void {
    const { request, response } = this.incoming
    const { events } = this.options
    if (response.destroyed || response.writableEnded) return // the client left, or has its answer
    if (!response.headersSent) {
      events.passThroughFailed({ reason: 'unreachable' })
      sendError(response, lossOf(request.method, sent, cause), events)
      return
    }
    events.passThroughFailed({ reason: 'brokenReply' })
    this.report()
    response.destroy()
  }

  /** Pauses the key's calls, as the service asked with this reply (429), for the budget of a request at the most. */
  private holdBack(retryAfter: string | undefined): void {
    const { rateLimit, partner } = this.incoming.authorisation
    const retryAfterMs = readRetryAfter(retryAfter, '', this.options.nowMs())
    const waitMs = retryWaitMs({ kind: 'notApplied', reason: 'throttled', retryAfterMs }, 0)
    if (waitMs !== undefined) rateLimit?.pauseFor(Math.min(waitMs, partner.budgetMs))
  }

  /**
   * What to do about a reply of 401: credentials to send the request with once more; undefined: the 401 is the client's. The
   * token of a request that cannot be sent again is renewed for the next one.
   */
  private renew(): Promise<V3Credentials> | undefined {
    const { authorisation, request } = this.incoming
    const renewed = this.mayRenew?.().then((own) => {
      this.added.push(...addedCredentials(own, authorisation.client))
      return own
    })
    this.mayRenew = undefined
    const { headers } = request
    const hasBody = headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
    if (renewed === undefined || (this.isRead() && !hasBody)) return renewed
    renewed.catch(() => undefined) // the next request asks again, and gets the error
    return undefined
  }

  private isRead(): boolean {
    return this.method === 'GET' || this.method === 'HEAD'
  }

  private report(): void {
    if (this.isReported) return
    this.isReported = true
    const { response, authorisation } = this.incoming
    const { events, nowMs } = this.options
    events.passedThrough({
      partner: authorisation.partner.id,
      method: this.method,
      status: response.headersSent ? response.statusCode : CLIENT_GONE,
      durationMs: nowMs() - this.startedMs,
      queuedMs: this.budget.queuedMs(),
    })
  }
}
