import type { Server } from 'node:http'

import { backgroundClock, systemClock } from '../clock.ts'
import { certificateOf, type Config, type ListenerTls } from '../config/index.ts'
import { createOrderedServer } from '../http/reply-order.ts'
import { MAX_HEADER_BYTES } from '../http/server.ts'
import type { Events } from '../observability/events.ts'
import type { Metrics } from '../observability/metrics.ts'
import type { Tracing } from '../observability/tracing.ts'
import type { AcceptedCredentials } from '../partners/credentials.ts'
import type { createByteBudget } from '../proxy/byte-budget.ts'
import { createRelays } from '../proxy/forwarder.ts'
import { createPassThrough } from '../proxy/pass-through.ts'
import type { ProxyApp } from '../proxy/router.ts'
import { createReaderConnections, createWholeReader, type Refusal } from '../upstream/index.ts'
import type { createRoutes } from './routes.ts'

/**
 * The idle timeout of a client connection. This timeout is longer than the idle timeout of common load balancers. Otherwise a load balancer
 * could send a batch on a connection that is closing, and then send the batch again.
 */
const CLIENT_IDLE_MS = 75_000
/** The longest time in which a client may send a whole request. The limits for slow clients end most slow requests earlier. */
const REQUEST_MS = 300_000
/** The interval at which Node.js looks for requests whose headers or body take too long. */
const TIMEOUT_CHECK_MS = 1_000

const CROWDED_MS = 60_000

/** Counts the connections that were closed because too many were open. Logs the counts at most once per `CROWDED_MS`. */
function reportCrowding({ connectionsCrowded }: Pick<Events, 'connectionsCrowded'>, limit: number) {
  const closed = { idle: 0, new: 0 }
  let isWaiting = false
  const report = (): void => {
    isWaiting = closed.idle + closed.new > 0
    if (!isWaiting) return
    connectionsCrowded({ limit, idle: closed.idle, refused: closed.new })
    closed.idle = closed.new = 0
    backgroundClock.after(CROWDED_MS, report)
  }
  return (which: 'idle' | 'new'): void => {
    closed[which] += 1
    if (!isWaiting) report()
  }
}

/** Creates the server for clients, which does not listen yet. While `isReady` returns false, a connection closes after its next reply. */
export function createListener(
  { listener, messages, onCutOff }: ProxyApp,
  { headersMs, maxConnections }: { readonly headersMs: number; readonly maxConnections: number | undefined },
  events: Pick<Events, 'slowClient' | 'handshakeFailed' | 'laterBytesRefused' | 'connectionsCrowded'>,
  isReady: () => boolean,
  tls: ListenerTls | undefined,
): Server {
  const server = createOrderedServer(
    {
      ...messages,
      maxHeaderSize: MAX_HEADER_BYTES,
      headersTimeout: headersMs,
      requestTimeout: Math.max(REQUEST_MS, headersMs),
      connectionsCheckingInterval: Math.min(TIMEOUT_CHECK_MS, headersMs),
    },
    listener,
    {
      onFault: ({ status, owed }) => {
        if (status === 408) events.slowClient({ phase: 'headers' })
        if (owed > 0) events.laterBytesRefused({ status, owed })
      },
      onCutOff,
      tls: certificateOf(tls),
      onHandshakeFailure: events.handshakeFailed,
      maxConnections,
      onCrowded: reportCrowding(events, maxConnections ?? Infinity),
    },
  )
  server.keepAliveTimeout = CLIENT_IDLE_MS
  server.prependListener('request', (_request, response) => {
    if (!isReady()) response.shouldKeepAlive = false
  })
  return server
}

const V2_CONNECTIONS = 64
/**
 * Maximum size of one page of V2, in bytes. The limit is high because V2 may repeat the whole history of a learner and event with each
 * mark.
 */
const MAX_PAGE_BYTES = 8_388_608

/** Returns a callback that counts the requests that get no connection. */
export function countRefusals(
  { shareRefused }: Pick<Metrics, 'shareRefused'>,
  resource: 'pass_through' | 'read' | 'relay',
): (reason: Refusal) => void {
  const reasons = { full: 'share', deadline: 'wait', gone: 'gone' } as const
  return (reason) => shareRefused({ resource, reason: reasons[reason] })
}

/** Creates the forwarders: the pass-through to V3, the relays to V2, and a reader of the marks in V2. */
export function createForwarding(parts: {
  readonly config: Config
  readonly routes: ReturnType<typeof createRoutes>
  readonly accepted: AcceptedCredentials
  readonly byteBudget: ReturnType<typeof createByteBudget>
  readonly metrics: Pick<Metrics, 'shareRefused' | 'called' | 'relayed'>
  readonly events: Events
  readonly nowMs: () => number
  readonly tracing: Tracing | undefined
  readonly acquireMs: number | undefined
}) {
  const { config, routes, accepted, byteBudget, metrics, events, nowMs, tracing, acquireMs } = parts
  const { v3, v2 } = config.upstreams
  const shared = { byteBudget, acquireMs, clock: systemClock, events, uploads: new WeakMap() }
  const passThrough = createPassThrough({
    ...shared,
    accepted,
    nowMs,
    baseUrl: v3.baseUrl,
    route: routes.v3,
    allow: config.passThrough.allow,
    rewriteLinks: config.passThrough.rewriteLinks,
    connections: v3.connections,
    // `headersMs` also limits the wait for each piece of a body, as clients of the service expect.
    timeouts: { ...v3.timeouts, bodyMs: v3.timeouts.headersMs },
    onCall: ({ status, durationMs }) => metrics.called({ kind: 'passThrough', status, durationMs }),
    trace: tracing && (() => tracing.call('V3 pass-through')),
    onFailure: (reason) =>
      events.passThroughFailed({ reason: reason === 'brokenReply' ? reason : 'unreachable' }),
    onRefusal: countRefusals(metrics, 'pass_through'),
  })
  const relays = createRelays({
    ...shared,
    route: routes.v2,
    connections: V2_CONNECTIONS,
    timeouts: { ...(v2 ?? v3).timeouts, bodyMs: v3.timeouts.bodyMs },
    onCall: ({ isRead, ...call }) => metrics.relayed({ kind: isRead ? 'read' : 'write', ...call }),
    trace: tracing && (() => tracing.call('V2')),
    onFailure: (reason) => events.relayFailed({ reason }),
    onRefusal: countRefusals(metrics, 'relay'),
  })
  const v2Reader = createWholeReader(
    createReaderConnections(V2_CONNECTIONS, (v2 ?? v3).timeouts, routes.v2),
    MAX_PAGE_BYTES,
  )
  return { passThrough, relays, v2Reader }
}
