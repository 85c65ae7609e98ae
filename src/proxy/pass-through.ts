import { Agent as HttpAgent, type ClientRequest, type IncomingMessage, ServerResponse } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'

import { createProxyMiddleware, proxyEventsPlugin } from 'http-proxy-middleware'

import { AdapterError } from '../errors.ts'
import { bodyArrival } from '../http/body-arrival.ts'
import type { FairGate, OnCall, QueueKey } from '../upstream/index.ts'
import type { V3Credentials } from '../v3/index.ts'
import { type AllowedPath, createAllowedPaths, readMethods, refuseMethod } from './allowed-paths.ts'
import type { ByteBudget, HeldBytes } from './byte-budget.ts'
import { enterGate } from '../upstream/index.ts'
import { sendError } from './error-reply.ts'
import { forwardHeaders } from './forward-headers.ts'
import type { Authorisation } from '../partners/partner.ts'
import { openProxiedRequest, type ProxiedRequest, type ProxiedRequestOptions } from './proxied-request.ts'
import { serviceRoot } from './read-request.ts'
import { type LinkRewriting, relayReply } from './relay-reply.ts'
import { pathOf } from '../http/request-target.ts'
import type { QueueKeys } from '../partners/queue-keys.ts'

const MAX_LISTENERS = 32

export interface PassThroughOptions extends ProxiedRequestOptions {
  readonly baseUrl: URL
  /** Everything else is not served. */
  readonly allow: readonly AllowedPath[]
  /** Turn the upstream's absolute links in JSON bodies into the adapter's. */
  readonly rewriteLinks: boolean
  readonly connections: number
  /** The gate in front of these connections. */
  readonly gate: FairGate
  /** Longest wait for a connection, ms. */
  readonly acquireMs: number
  readonly queueKeys: QueueKeys
  readonly byteBudget: ByteBudget
  /** Longest silence of the upstream, and the time from the end of the request to the status line. */
  readonly timeoutMs: number
  /** Hears of every call that left. */
  readonly onCall: OnCall
}

export interface PassThrough {
  /** Error `ADP_METHOD_NOT_ALLOWED` for a method that the path does not take. */
  checkMethod(request: IncomingMessage, response: ServerResponse): void
  /**
   * Serves an authorised request in its turn, GET and HEAD as reads, others as writes. `links` turns paths of V3 into addresses of
   * the adapter, the first that fits; by default a link keeps its path. Errors: `ADP_NOT_FOUND` or `ADP_PATH` for
   * what is not on the list, `ADP_BUDGET_EXCEEDED` or `ADP_OVERLOADED` (503) for what would wait too long.
   */
  handle(
    request: IncomingMessage,
    response: ServerResponse,
    authorisation: Authorisation,
    links?: readonly LinkRewriting[],
  ): Promise<void>
  /** What to answer when the upload of this request is given up: it may have been applied where a part of it was sent on. */
  uploadLost(request: IncomingMessage): AdapterError
  close(): void
}

/** One request on its way: whose it is, and the connection that it uses now. */
interface Passing {
  readonly passage: ProxiedRequest
  readonly queueKey: QueueKey
  readonly authorisation: Authorisation
  readonly links: readonly LinkRewriting[]
  /** What of its body waits for a connection. */
  readonly held: HeldBytes
  leave: () => void
  outgoing: ClientRequest | undefined
}

/**
 * Creates the pass-through: requests go to V3 unchanged, streamed both ways, without hop-by-hop headers and with the
 * partner's credentials. Method, status, headers and bytes of the reply are the upstream's; when it dies in the middle of a
 * body the client's connection breaks too. A 401 to a token of the adapter's own renews it: a GET or HEAD without a body then
 * goes out once more, any other request is answered with the 401, since its body has been streamed.
 */
export function createPassThrough(options: PassThroughOptions): PassThrough {
  const { baseUrl, events, clock, onCall } = options
  const target = baseUrl.href.replace(/\/$/, '')
  const agentOptions = { keepAlive: true, maxSockets: options.connections, timeout: options.timeoutMs }
  const secure = baseUrl.protocol === 'https:'
  const agent = secure ? new HttpsAgent(agentOptions) : new HttpAgent(agentOptions)
  const methodsOf = createAllowedPaths(options.allow)
  const connected = new WeakSet<IncomingMessage>()
  const underWay = new WeakMap<IncomingMessage, Passing>()
  const fail = (request: IncomingMessage, response: ServerResponse, cause?: Error): void => {
    if (response.destroyed || response.writableEnded) return // the client left, or has its answer
    if (response.headersSent) {
      events.passThroughFailed({ reason: 'brokenReply' })
      response.destroy()
      return
    }
    events.passThroughFailed({ reason: 'unreachable' })
    sendError(response, lossOf(request.method, connected.has(request), cause), events)
  }
  const middleware = createProxyMiddleware({
    target,
    changeOrigin: true,
    xfwd: true,
    agent,
    proxyTimeout: options.timeoutMs,
    selfHandleResponse: true,
    // The default plugins would answer errors with the host and path of the request, and log them.
    ejectPlugins: true,
    plugins: [proxyEventsPlugin],
    on: {
      proxyReq: (outgoing, request, response) => {
        const passing = underWay.get(request)
        if (passing !== undefined) {
          passing.outgoing = outgoing
          outgoing.once('close', passing.leave)
        }
        const { socket } = outgoing
        if (socket?.connecting === true) {
          socket.once(secure ? 'secureConnect' : 'connect', () => connected.add(request))
        } else {
          connected.add(request)
        }
        // Whatever trickles in before the status line: once the request has left whole, that line must come in time.
        let cancel = (): void => undefined
        outgoing.once('finish', () => {
          cancel = clock.after(options.timeoutMs, () =>
            outgoing.destroy(new AdapterError('ADP_UPSTREAM_UNAVAILABLE', 'No status line came in time.')),
          )
        })
        const startedMs = clock.nowMs()
        let answered = false
        const seen = (status: number | undefined): void =>
          onCall({ kind: 'passThrough', status, durationMs: clock.nowMs() - startedMs })
        outgoing.once('response', ({ statusCode }) => {
          cancel()
          answered = true
          seen(statusCode)
        })
        // After an upgrade that nobody asked for there is neither a reply nor an error.
        outgoing.once('close', () => {
          cancel()
          if (answered) return
          if (connected.has(request)) seen(undefined)
          fail(request, response)
        })
      },
      proxyRes: (upstream, request, response) => {
        const passing = underWay.get(request)
        const { statusCode = 0 } = upstream
        if (statusCode === 429) passing?.passage.holdBack(upstream.headers['retry-after'])
        if (passing !== undefined && statusCode < 400) options.queueKeys.accept(passing.authorisation)
        const renewed = statusCode === 401 ? passing?.passage.renew() : undefined
        if (passing !== undefined && renewed !== undefined) {
          upstream.resume()
          void sendAgain(passing, renewed, request, response)
          return
        }
        const links = options.rewriteLinks
          ? [...(passing?.links ?? []), { from: '', to: serviceRoot(request, '') }].map(({ from, to }) => ({
              from: target + from,
              to,
            }))
          : []
        try {
          relayReply(upstream, response, links, passing?.passage.added ?? [], () => fail(request, response))
        } catch (cause) {
          upstream.destroy()
          fail(request, response, cause instanceof Error ? cause : undefined)
        }
      },
      error: (cause, request, response) => {
        if (response instanceof ServerResponse) fail(request, response, cause)
      },
    },
  })
  /** Sends the request in its turn, over a connection of its client's share. */
  const send = async (
    passing: Passing,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> => {
    const { budget, signal } = passing.passage
    await budget.take()
    passing.outgoing = undefined
    const waitMs = Math.min(options.acquireMs, budget.leftMs())
    passing.leave = await enterGate(options.gate, passing.queueKey, waitMs, signal)
    passing.held.release()
    try {
      await middleware(request, response)
    } catch (cause) {
      passing.leave()
      throw cause
    }
  }
  const sendAgain = async (
    passing: Passing,
    renewed: Promise<V3Credentials>,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> => {
    try {
      request.headers.authorization = (await renewed).authorization
      await send(passing, request, response)
    } catch (cause) {
      if (!response.destroyed) sendError(response, cause, events) // else nobody is left to be told
    }
  }
  return {
    checkMethod: (request, response) => {
      const methods = methodsOf(pathOf(request)) ?? readMethods
      if (!methods.includes(request.method ?? '')) throw refuseMethod(response, methods)
    },
    handle: async (request, response, authorisation, links = []) => {
      if (methodsOf(pathOf(request)) === undefined) {
        throw new AdapterError(
          'ADP_NOT_FOUND',
          'This path is not served. The configuration lists what is passed through.',
        )
      }
      forwardHeaders(request, authorisation.credentials)
      if (options.rewriteLinks) request.headers['accept-encoding'] = 'identity'
      // The proxy, the pipeline and the turns all listen for its end, and some twice when it is sent again.
      response.setMaxListeners(MAX_LISTENERS)
      const queueKey = options.queueKeys.of(authorisation)
      const passage = openProxiedRequest(options, queueKey, authorisation, request, response)
      const passing: Passing = {
        passage,
        queueKey,
        authorisation,
        links,
        held: options.byteBudget.open(queueKey),
        leave: () => undefined,
        outgoing: undefined,
      }
      underWay.set(request, passing)
      response.once('close', () => {
        // With a request to the upstream its end counts: it is a little later.
        if (passing.outgoing === undefined) passing.leave()
      })
      try {
        // A client that takes its time for a body holds no connection meanwhile.
        await bodyArrival(request, (count) => passing.held.take(count))
        await send(passing, request, response)
      } finally {
        passing.held.release()
      }
    },
    uploadLost: (request) => {
      const sent = connected.has(request)
      const error = sent && !SAFE_METHODS.includes(request.method) ? partlySent() : slowUpload()
      underWay.get(request)?.outgoing?.destroy(error)
      return error
    },
    close: () => agent.destroy(),
  }
}

const SAFE_METHODS: readonly (string | undefined)[] = ['GET', 'HEAD', 'OPTIONS']

/** What to tell of a request without a reply: a write that may have reached the service is never a plain failure. */
function lossOf(method: string | undefined, sent: boolean, cause: Error | undefined): AdapterError {
  if (!sent || SAFE_METHODS.includes(method)) {
    return new AdapterError('ADP_UPSTREAM_UNAVAILABLE', 'The service cannot be reached.', { cause })
  }
  return new AdapterError(
    'ADP_OUTCOME_UNKNOWN',
    'No answer came after the request was sent. It may have been applied: look it up first.',
    { cause },
  )
}

function slowUpload(): AdapterError {
  return new AdapterError(
    'ADP_SLOW_CLIENT',
    'The body of the request arrived too slowly. Nothing was applied; send it again.',
  )
}

function partlySent(): AdapterError {
  return new AdapterError(
    'ADP_OUTCOME_UNKNOWN',
    'The body of the request arrived too slowly, and a part of it had been sent on. It may have been applied: look it up first.',
  )
}
