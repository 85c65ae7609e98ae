import { Agent as HttpAgent, type IncomingMessage, ServerResponse } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'

import { createProxyMiddleware, proxyEventsPlugin } from 'http-proxy-middleware'

import { AdapterError } from '../errors.ts'
import type { OnCall, V3Credentials } from '../v3/index.ts'
import { type AllowedPath, createAllowedPaths, readMethods, refuseMethod } from './allowed-paths.ts'
import { sendError } from './error-reply.ts'
import { forwardHeaders } from './forward-headers.ts'
import type { Authorisation } from './partner.ts'
import { openPassage, type Passage, type PassageOptions } from './passage.ts'
import { serviceRoot } from './read-request.ts'
import { relayReply } from './relay-reply.ts'
import { pathOf } from './request-target.ts'

const MAX_LISTENERS = 32

export interface PassThroughOptions extends PassageOptions {
  readonly baseUrl: URL
  /** Everything else is not served. */
  readonly allow: readonly AllowedPath[]
  /** Turn the upstream's absolute links in JSON bodies into the adapter's. */
  readonly rewriteLinks: boolean
  readonly connections: number
  /** Longest silence of the upstream. */
  readonly timeoutMs: number
  /** Hears of every call that left. */
  readonly onCall: OnCall
}

export interface PassThrough {
  /** Error `ADP_METHOD_NOT_ALLOWED` for a method that the path does not take. */
  checkMethod(request: IncomingMessage, response: ServerResponse): void
  /**
   * Serves an authorised request in its turn, GET and HEAD as reads, others as writes. Errors: `ADP_NOT_FOUND` or `ADP_PATH` for
   * what is not on the list, `ADP_BUDGET_EXCEEDED` or `ADP_OVERLOADED` (503) for what would wait too long.
   */
  handle(request: IncomingMessage, response: ServerResponse, authorisation: Authorisation): Promise<void>
  close(): void
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
  const passages = new WeakMap<IncomingMessage, Passage>()
  const fail = (request: IncomingMessage, response: ServerResponse, cause?: Error): void => {
    if (response.destroyed) return // the client left, or this was told already
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
        const { socket } = outgoing
        if (socket?.connecting === true) {
          socket.once(secure ? 'secureConnect' : 'connect', () => connected.add(request))
        } else {
          connected.add(request)
        }
        const startedMs = clock.nowMs()
        let answered = false
        const seen = (status: number | undefined): void =>
          onCall({ kind: 'passThrough', status, durationMs: clock.nowMs() - startedMs })
        outgoing.once('response', ({ statusCode }) => {
          answered = true
          seen(statusCode)
        })
        // After an upgrade that nobody asked for there is neither a reply nor an error.
        outgoing.once('close', () => {
          if (answered) return
          if (connected.has(request)) seen(undefined)
          fail(request, response)
        })
      },
      proxyRes: (upstream, request, response) => {
        const passage = passages.get(request)
        if (upstream.statusCode === 429) passage?.holdBack(upstream.headers['retry-after'])
        const renewed = upstream.statusCode === 401 ? passage?.renew() : undefined
        if (passage !== undefined && renewed !== undefined) {
          upstream.resume()
          void sendAgain(passage, renewed, request, response)
          return
        }
        const links = options.rewriteLinks ? { from: target, to: serviceRoot(request, '') } : undefined
        try {
          relayReply(upstream, response, links, passage?.added ?? [], () => fail(request, response))
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
  const sendAgain = async (
    { turns }: Passage,
    renewed: Promise<V3Credentials>,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> => {
    try {
      request.headers.authorization = (await renewed).authorization
      await turns.take()
      await middleware(request, response)
    } catch (cause) {
      if (!response.destroyed) sendError(response, cause, events) // else nobody is left to be told
    }
  }
  return {
    checkMethod: (request, response) => {
      const methods = methodsOf(pathOf(request)) ?? readMethods
      if (!methods.includes(request.method ?? '')) throw refuseMethod(response, methods)
    },
    handle: async (request, response, authorisation) => {
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
      const passage = openPassage(options, authorisation, request, response)
      passages.set(request, passage)
      await passage.turns.take()
      await middleware(request, response)
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
