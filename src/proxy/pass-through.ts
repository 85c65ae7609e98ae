import type { IncomingMessage, ServerResponse } from 'node:http'

import { AdapterError } from '../errors.ts'
import { bodyArrival } from '../http/body-arrival.ts'
import { pathOf } from '../http/request-target.ts'
import type { Authorisation } from '../partners/partner.ts'
import type { QueueKeys } from '../partners/queue-keys.ts'
import {
  type CallFailure,
  createConnections,
  enterGate,
  type FairGate,
  type OnCall,
  StreamCall,
  type UpstreamTimeouts,
} from '../upstream/index.ts'
import type { V3Credentials } from '../v3/index.ts'
import { type AllowedPath, createAllowedPaths, readMethods, refuseMethod } from './allowed-paths.ts'
import type { ByteBudget } from './byte-budget.ts'
import { sendError } from './error-reply.ts'
import { LinkRewriter, type LinkRewriting } from './link-rewriter.ts'
import { openProxiedRequest, type ProxiedRequest, type ProxiedRequestOptions } from './proxied-request.ts'
import { serviceRoot } from './read-request.ts'
import { ReplyRelay } from './relay-reply.ts'
import { toUpstreamBody, toUpstreamFields } from './upstream-request.ts'

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
  readonly timeouts: UpstreamTimeouts
  /** Called for every call that left. */
  readonly onCall: OnCall
}

export interface PassThrough {
  /** Error `ADP_METHOD_NOT_ALLOWED` for a method that the path does not take. */
  checkMethod(request: IncomingMessage, response: ServerResponse): void
  /**
   * Serves an authorised request under its rate limit, GET and HEAD as reads, others as writes. `links` turns paths of V3 into
   * addresses of the adapter, the first that fits; by default a link keeps its path. Errors: `ADP_NOT_FOUND` or `ADP_PATH` for
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
  close(): Promise<void>
}

/** One request, its reply, and what its calls go by. */
interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly authorisation: Authorisation
  readonly proxied: ProxiedRequest
  readonly createRewriter: (() => LinkRewriter) | undefined
}

/**
 * Creates the pass-through: requests go to V3 unchanged over connections of their own, streamed both ways, without hop-by-hop
 * headers and with the partner's credentials. Method, status, headers and bytes of the reply are the upstream's; when it dies in
 * the middle of a body the client's connection breaks too. A 401 to a token of the adapter's own renews it: a GET or HEAD without
 * a body then goes out once more, any other request is answered with the 401, since its body has been streamed.
 */
export function createPassThrough(options: PassThroughOptions): PassThrough {
  const { baseUrl, events, clock, onCall, timeouts } = options
  const basePath = baseUrl.pathname.replace(/\/$/, '')
  const target = `${baseUrl.origin}${basePath}`
  const targetBytes = Buffer.from(target)
  const connections = createConnections(baseUrl.origin, options.connections, timeouts)
  const methodsOf = createAllowedPaths(options.allow)
  const calls = new WeakMap<IncomingMessage, StreamCall>()

  const fail = ({ request, response, proxied }: Exchange, { sent, cause }: CallFailure): void => {
    if (response.destroyed || response.writableEnded) return // the client left, or has its answer
    if (response.headersSent) {
      events.passThroughFailed({ reason: 'brokenReply' })
      proxied.finish()
      response.destroy()
      return
    }
    events.passThroughFailed({ reason: 'unreachable' })
    sendError(response, lossOf(request.method, sent, cause), events)
  }
  /** Sends the request over a connection of its client, once the rate limit lets it. */
  const send = async (exchange: Exchange, credentials: V3Credentials): Promise<void> => {
    const { request, response, proxied } = exchange
    const { budget, signal, queueKey, held } = proxied
    await budget.take()
    const leave = await enterGate(
      options.gate,
      queueKey,
      Math.min(options.acquireMs, budget.leftMs()),
      signal,
    )
    held.release()
    let renewed: Promise<V3Credentials> | undefined
    const relay = new ReplyRelay(response, {
      added: proxied.added,
      createRewriter: exchange.createRewriter,
      onDrain: () => call.resume(),
    })
    const call = new StreamCall({
      headersMs: timeouts.headersMs,
      clock,
      onAnswered: (status, durationMs) => onCall({ kind: 'passThrough', status, durationMs }),
      sink: {
        onHead: (head) => {
          if (head.status === 429) proxied.holdBack(head.headers['retry-after'])
          if (head.status < 400) options.queueKeys.accept(exchange.authorisation)
          if (head.status === 401) renewed = proxied.renew()
          if (renewed === undefined) relay.start(head)
        },
        onData: (chunk) => renewed !== undefined || relay.data(chunk),
        onEnd: () => {
          leave()
          if (renewed === undefined) relay.end()
          else void sendAgain(exchange, renewed)
        },
        onFailure: (failure) => {
          leave()
          if (renewed === undefined) fail(exchange, failure)
          else void sendAgain(exchange, renewed)
        },
      },
    })
    calls.set(request, call)
    connections.dispatch(
      {
        method: request.method ?? 'GET',
        path: basePath + (request.url ?? '/'),
        headers: toUpstreamFields(request, credentials, options.rewriteLinks),
        body: toUpstreamBody(request),
      },
      call,
      queueKey,
    )
  }
  const sendAgain = async (exchange: Exchange, renewed: Promise<V3Credentials>): Promise<void> => {
    const { response } = exchange
    try {
      await send(exchange, await renewed)
    } catch (cause) {
      if (!response.destroyed) sendError(response, cause, events) // else the client has gone
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
      const queueKey = options.queueKeys.of(authorisation)
      const held = options.byteBudget.open(queueKey)
      const proxied = openProxiedRequest(options, { queueKey, held, authorisation, request, response })
      proxied.signal.addEventListener('abort', () => calls.get(request)?.abort())
      const rewritings = (): LinkRewriting[] =>
        [...links, { from: '', to: serviceRoot(request, '') }].map(({ from, to }) => ({
          from: target + from,
          to,
        }))
      const createRewriter = options.rewriteLinks
        ? () => new LinkRewriter(targetBytes, rewritings)
        : undefined
      try {
        // A client that takes its time for a body holds no connection meanwhile.
        await bodyArrival(request, (count) => held.take(count))
        await send({ request, response, authorisation, proxied, createRewriter }, authorisation.credentials)
      } finally {
        held.release()
      }
    },
    uploadLost: (request) => {
      const call = calls.get(request)
      const isWrite = !SAFE_METHODS.includes(request.method)
      const error = call?.isSent() === true && isWrite ? partlySent() : slowUpload()
      // Later: its failure must find the answer that the caller gives now.
      if (call !== undefined) queueMicrotask(() => call.abort(error))
      return error
    },
    close: () => connections.close(),
  }
}

const SAFE_METHODS: readonly (string | undefined)[] = ['GET', 'HEAD', 'OPTIONS']

/** The error of a request without a reply: a write that may have reached the service is never a plain failure. */
function lossOf(method: string | undefined, sent: boolean, cause: Error): AdapterError {
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
