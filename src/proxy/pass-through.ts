import type { IncomingMessage, ServerResponse } from 'node:http'

import { AdapterError } from '../errors.ts'
import { bodyArrival, hasBody } from '../http/body-arrival.ts'
import type { Authorisation } from '../partners/partner.ts'
import {
  createConnections,
  enterGate,
  type FairGate,
  type OnCall,
  StreamCall,
  type StreamCallOptions,
  type UpstreamTimeouts,
} from '../upstream/index.ts'
import type { V3Credentials } from '../v3/index.ts'
import { type AllowedPath, createAllowedMethods, readMethods, refuseMethod } from './allowed-paths.ts'
import type { ByteBudget } from './byte-budget.ts'
import { sendError } from './error-reply.ts'
import { type LinkBytes, LinkRewriter, type LinkRewriting, toLinkBytes } from './link-rewriter.ts'
import { slowUploadOf } from './lost-request.ts'
import { type Incoming, ProxiedRequest, type ProxiedRequestOptions } from './proxied-request.ts'
import { serviceRoot } from './requested-address.ts'
import { GONE } from './until-gone.ts'
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

/**
 * Creates the pass-through: requests go to V3 unchanged over connections of their own, streamed both ways, without hop-by-hop
 * headers and with the partner's credentials. Method, status, headers and bytes of the reply are the upstream's; when it dies in
 * the middle of a body the client's connection breaks too. A 401 to a token of the adapter's own renews it: a GET or HEAD without
 * a body then goes out once more, any other request is answered with 502 `ADP_V3_CREDENTIALS`, since its body has been streamed.
 */
export function createPassThrough(options: PassThroughOptions): PassThrough {
  const { baseUrl, events, clock, onCall, timeouts, gate } = options
  const basePath = baseUrl.pathname.replace(/\/$/, '')
  const target = `${baseUrl.origin}${basePath}`
  const targetBytes = Buffer.from(target)
  const connections = createConnections(baseUrl.origin, options.connections, timeouts)
  const methodsOf = createAllowedMethods(options.allow)
  /** The requests that have a body. */
  const uploads = new WeakMap<IncomingMessage, ProxiedRequest>()
  const calling: StreamCallOptions = {
    headersMs: timeouts.headersMs,
    clock,
    onAnswered: (status, durationMs) => onCall({ kind: 'passThrough', status, durationMs }),
  }

  // Most clients know the adapter by the same address.
  let latest: { readonly root: string; readonly bytes: readonly LinkBytes[] } | undefined
  const linksTo = (root: string, links: readonly LinkRewriting[]): readonly LinkBytes[] => {
    if (links.length > 0)
      return toLinkBytes(
        [...links, { from: '', to: root }].map((link) => ({ ...link, from: target + link.from })),
      )
    if (latest?.root !== root) latest = { root, bytes: toLinkBytes([{ from: target, to: root }]) }
    return latest.bytes
  }

  /** Sends the request over a connection of its client, once the rate limit lets it. */
  const send = async (proxied: ProxiedRequest, credentials: V3Credentials): Promise<void> => {
    const { budget, queueKey } = proxied
    const { request, response } = proxied.incoming
    await budget.take()
    const waitMs = Math.min(options.acquireMs, budget.leftMs())
    const leave = gate.tryEnter(queueKey) ?? (await enterGate(gate, queueKey, waitMs, proxied.signal()))
    if (response.destroyed) {
      leave()
      throw GONE
    }
    const call = new StreamCall(proxied, calling)
    proxied.call = call
    proxied.leave = leave
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
  const sendAgain: Incoming['sendAgain'] = (proxied, credentials) => {
    credentials
      .then((own) => send(proxied, own))
      .catch((cause: unknown) => {
        const { response } = proxied.incoming
        if (!response.destroyed) sendError(response, cause, events) // else the client has gone
      })
  }
  return {
    checkMethod: (request, response) => {
      const methods = methodsOf(request) ?? readMethods
      if (!methods.includes(request.method ?? '')) throw refuseMethod(response, methods)
    },
    handle: async (request, response, authorisation, links = []) => {
      if (methodsOf(request) === undefined) {
        throw new AdapterError(
          'ADP_NOT_FOUND',
          'This path is not served: passThrough.allow of the configuration does not list it.',
        )
      }
      const createRewriter = options.rewriteLinks
        ? () => new LinkRewriter(targetBytes, () => linksTo(serviceRoot(request, ''), links))
        : undefined
      const incoming = { request, response, authorisation, createRewriter, sendAgain }
      const proxied = new ProxiedRequest(options, incoming)
      if (!hasBody(request)) {
        await send(proxied, authorisation.credentials)
        return
      }
      uploads.set(request, proxied)
      const held = options.byteBudget.open(proxied.queueKey)
      try {
        // A client that takes its time for a body holds no connection meanwhile.
        await bodyArrival(request, (count) => held.take(count))
        await send(proxied, authorisation.credentials)
      } finally {
        held.release()
      }
    },
    uploadLost: (request) => {
      const call = uploads.get(request)?.call
      const error = slowUploadOf(request.method, call?.isSent() === true)
      // Later: its failure must find the answer that the caller gives now.
      if (call !== undefined) queueMicrotask(() => call.abort(error))
      return error
    },
    close: () => connections.close(),
  }
}
