import { Agent as HttpAgent, type ClientRequest, type IncomingMessage, ServerResponse } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import { pipeline } from 'node:stream'

import { createProxyMiddleware, proxyEventsPlugin } from 'http-proxy-middleware'

import type { Clock } from '../clock.ts'
import { AdapterError } from '../errors.ts'
import { endToEndFields } from '../http/hop-by-hop.ts'
import type { Events } from '../observability/events.ts'
import { sendError } from './error-reply.ts'
import { lossOf } from './lost-request.ts'

const MAX_LISTENERS = 32

export interface RelayOptions {
  /** The base address of V2: the path of a request is added to its own. */
  readonly baseUrl: URL
  readonly connections: number
  /** Longest silence of V2, and the time from the end of the request to the status line. */
  readonly timeoutMs: number
  readonly clock: Clock
  readonly events: Events
}

/** Sends requests on to V2, and its replies back, both as they are. */
export interface Relay {
  /** Relays one request; resolves once the connection of its reply is free again, or closed. */
  handle(request: IncomingMessage, response: ServerResponse): Promise<void>
  close(): void
}

/**
 * Creates a relay: fields keep names, order and repetition in both directions (those of one name of a request stand together),
 * bodies are streamed and not changed, and only `Host` and what belongs to one connection is each connection's own. Where V2
 * cannot be reached, the client gets 503 `ADP_UPSTREAM_UNAVAILABLE`, for a write that may have left 504 `ADP_OUTCOME_UNKNOWN`;
 * when V2 dies in a body, the client's connection breaks too.
 */
export function createRelay({ baseUrl, connections, timeoutMs, clock, events }: RelayOptions): Relay {
  const isSecure = baseUrl.protocol === 'https:'
  const agentOptions = { keepAlive: true, maxSockets: connections, timeout: timeoutMs }
  const agent = isSecure ? new HttpsAgent(agentOptions) : new HttpAgent(agentOptions)
  const sent = new WeakSet<IncomingMessage>()
  const fail = (request: IncomingMessage, response: ServerResponse, cause?: Error): void => {
    if (response.destroyed || response.writableEnded) return // the client left, or has its answer
    if (response.headersSent) {
      events.passThroughFailed({ reason: 'brokenReply' })
      response.destroy()
      return
    }
    events.passThroughFailed({ reason: 'unreachable' })
    sendError(response, lossOf(request.method, sent.has(request), cause), events)
  }
  const middleware = createProxyMiddleware({
    target: baseUrl.href.replace(/\/$/, ''),
    changeOrigin: true,
    agent,
    proxyTimeout: timeoutMs,
    // The library writes the names of fields in lower case.
    selfHandleResponse: true,
    // Its default plugins would answer errors with the host and path of the request, and log them.
    ejectPlugins: true,
    plugins: [proxyEventsPlugin],
    on: {
      proxyReq: (outgoing, request, response) => {
        restoreFields(outgoing, request)
        const { socket } = outgoing
        const left = (): void => void sent.add(request)
        if (socket?.connecting === true) socket.once(isSecure ? 'secureConnect' : 'connect', left)
        else left()
        // Interim responses would begin the time of silence anew.
        let cancel = (): void => undefined
        outgoing.once('finish', () => {
          cancel = clock.after(timeoutMs, () => outgoing.destroy(overdue()))
        })
        let isAnswered = false
        outgoing.once('response', () => {
          isAnswered = true
          cancel()
        })
        // After an upgrade that was not asked for there is neither a reply nor an error.
        outgoing.once('close', () => {
          cancel()
          if (!isAnswered) fail(request, response)
        })
      },
      proxyRes: (reply, request, response) => {
        try {
          const fields = endToEndFields(reply.rawHeaders)
          response.writeHead(reply.statusCode ?? 0, reply.statusMessage ?? '', fields)
        } catch (cause) {
          reply.destroy()
          fail(request, response, cause instanceof Error ? cause : undefined)
          return
        }
        reply.once('aborted', () => fail(request, response))
        pipeline(reply, response, () => undefined) // both ends are closed by now, each in its own way
      },
      error: (cause, request, response) => {
        if (response instanceof ServerResponse) fail(request, response, cause)
      },
    },
  })
  return {
    handle: async (request, response) => {
      // The library would pass on the one, and with the other (which Node has answered) not show the request that it makes.
      for (const name of ['connection', 'expect']) Reflect.deleteProperty(request.headers, name)
      // The library, the pipeline and this file listen for its end.
      response.setMaxListeners(MAX_LISTENERS)
      const closed = new Promise<void>((resolve) => response.once('close', resolve))
      await middleware(request, response)
      await closed
    },
    close: () => agent.destroy(),
  }
}

/** What Node and the library see to on the connection to V2. */
const OWN_FIELDS: ReadonlySet<string> = new Set(['connection', 'transfer-encoding'])
/** Named in `Connection` they stay: without them the body would be read as another request. */
const KEPT_FIELDS: ReadonlySet<string> = new Set(['content-length', 'host'])

/** Puts the fields of the request back as its client wrote them: the library has made their names lower case. */
function restoreFields(outgoing: ClientRequest, request: IncomingMessage): void {
  const host = outgoing.getHeader('host')
  for (const name of outgoing.getHeaderNames()) if (!OWN_FIELDS.has(name)) outgoing.removeHeader(name)
  const byName = new Map<string, { readonly name: string; readonly values: string[] }>()
  const fields = endToEndFields(request.rawHeaders, KEPT_FIELDS)
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const [name = '', value = ''] = fields.slice(at, at + 2)
    const lower = name.toLowerCase()
    if (lower === 'expect') continue
    const before = byName.get(lower)
    if (before === undefined) byName.set(lower, { name, values: [value] })
    else before.values.push(value)
  }
  for (const [lower, { name, values }] of byName) {
    if (lower === 'host') outgoing.setHeader(name, host ?? values)
    else outgoing.setHeader(name, values.length === 1 ? (values[0] ?? '') : values)
  }
}

function overdue(): AdapterError {
  return new AdapterError('ADP_UPSTREAM_UNAVAILABLE', 'No status line came in time.')
}
