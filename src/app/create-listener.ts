import { createServer, type Server } from 'node:http'

import type { Tuning } from '../config/index.ts'
import { answerUnreadable, refuseTunnel } from '../http/answer-unreadable.ts'
import { MAX_HEADER_BYTES } from '../http/server.ts'
import type { Events } from '../observability/events.ts'
import type { ProxyApp } from '../proxy/index.ts'

/**
 * Idle time of client connections: above that of usual load balancers, which would otherwise reuse a connection at the
 * moment it closes and repeat a batch.
 */
const CLIENT_IDLE_MS = 75_000
/** The longest time for a whole request; the minimum rate ends slow ones earlier. */
const REQUEST_MS = 300_000
/** How often Node looks for requests whose headers or body take too long. */
const TIMEOUT_CHECK_MS = 1_000

type SlowClients = Pick<Tuning['slowClients'], 'headersMs'>

/** Creates the server of the adapter, which does not listen yet. While it is not ready it closes connections after their reply. */
export function createListener(
  { listener, messages }: ProxyApp,
  limits: SlowClients,
  events: Pick<Events, 'slowClient'>,
  isReady: () => boolean,
): Server {
  const server = createServer(
    {
      ...messages,
      maxHeaderSize: MAX_HEADER_BYTES,
      ...requestTimeouts(limits),
      connectionsCheckingInterval: Math.min(TIMEOUT_CHECK_MS, limits.headersMs),
    },
    listener,
  )
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') events.slowClient({ phase: 'headers' })
    answerUnreadable(error, socket)
  })
  server.on('connect', (_request, socket) => refuseTunnel(socket))
  // A client that closes its side after its request (RFC 9293 3.6) still reads: Node would close the other side before the reply. One that
  // has gone altogether looks the same until something is written to it, and resets the connection then. Node's types lack this member.
  Object.assign(server, { httpAllowHalfOpen: true })
  server.keepAliveTimeout = CLIENT_IDLE_MS
  // A kept connection may still ask while the adapter stops: it is answered, and then closed.
  server.prependListener('request', (_request, response) => {
    if (!isReady()) response.shouldKeepAlive = false
  })
  return server
}

/** The times for the head of a request and for the whole of it, as Node's server names them. */
export function requestTimeouts({ headersMs }: SlowClients): {
  readonly headersTimeout: number
  readonly requestTimeout: number
} {
  return { headersTimeout: headersMs, requestTimeout: Math.max(REQUEST_MS, headersMs) }
}
