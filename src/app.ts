import { randomUUID } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'

import type { Config, PartnerConfig } from './config/index.ts'
import { AdapterError } from './errors.ts'
import { createEvents, type Events } from './observability/events.ts'
import { createLogger } from './observability/logger.ts'
import {
  createAuthorise,
  createByteBudget,
  createInFlight,
  createPassThrough,
  createProxyApp,
  type Partner,
} from './proxy/index.ts'
import { defaultBatchLimits } from './v2/index.ts'
import { createV3Client } from './v3/index.ts'

/**
 * Idle time of client connections: above that of usual load balancers, which would otherwise reuse a connection at the
 * moment it closes and repeat a batch.
 */
const CLIENT_IDLE_MS = 75_000

/** Parts that a caller may replace, mostly to observe or to fix time and ids. */
export interface AppOverrides {
  readonly events?: Events
  readonly logLevel?: string
  readonly nowMs?: () => number
  readonly newId?: () => string
}

/** The running adapter. */
export interface App {
  /** Starts to listen; resolves with the address in use (port 0 in the configuration takes a free one). */
  listen(): Promise<{ readonly url: string; readonly port: number }>
  /** Stops accepting, lets what is under way finish, then closes the connections to the upstream. */
  close(): Promise<void>
}

/** The composition root: builds the adapter from a checked configuration. Opens nothing before `listen`. */
export function createApp(config: Config, overrides: AppOverrides = {}): App {
  const { v3 } = config.upstreams
  const nowMs = overrides.nowMs ?? Date.now
  const events = overrides.events ?? createEvents(createLogger(overrides.logLevel ?? 'info'))
  const client = createV3Client({
    baseUrl: v3.baseUrl,
    connections: v3.connections,
    timeouts: v3.timeouts,
    nowMs,
  })
  const passThrough = createPassThrough({
    baseUrl: v3.baseUrl,
    allow: config.passThrough.allow,
    rewriteLinks: config.passThrough.rewriteLinks,
    connections: v3.connections,
    timeoutMs: v3.timeouts.headersMs,
    events,
  })
  const context = {
    authorise: createAuthorise(config.partners.map(toPartner)),
    v3: client,
    limits: { ...defaultBatchLimits, ...config.limits },
    byteBudget: createByteBudget(config.limits.maxInFlightBytes),
    inFlight: createInFlight(),
    serviceHosts: [v3.baseUrl.hostname.toLowerCase()],
    events,
    nowMs,
    newId: overrides.newId ?? randomUUID,
  }
  let ready = false
  const server = createServer(createProxyApp(context, passThrough, () => ready))
  server.keepAliveTimeout = CLIENT_IDLE_MS
  return {
    listen: async () => {
      const { port } = await listen(server, config.listen.port, config.listen.host)
      ready = true
      const url = `http://${config.listen.host}:${port}`
      events.started({ url })
      return { url, port }
    },
    close: async () => {
      ready = false
      await closeServer(server)
      // A batch whose client went away has no connection any more, but still runs to its end.
      await context.inFlight.idle()
      passThrough.close()
      await client.close()
      events.stopped()
    },
  }
}

function toPartner(partner: PartnerConfig): Partner {
  const { v3 } = partner
  const { subscriptionKey } = v3
  return {
    id: partner.id,
    match: partner.match,
    layout: partner.layout,
    mismatch: partner.quirks.mismatch,
    mapping: {
      attendeeType: v3.attendeeType,
      eventType: v3.eventType,
      codeType: v3.codeType,
      changeProcessName: partner.changeProcessName,
      unmappedFields: partner.unmappedFields,
    },
    bodyProfile: v3.bodyProfile,
    concurrency: v3.concurrency,
    budgetMs: v3.budgetMs,
    subscriptionKey: subscriptionKey === undefined ? undefined : () => subscriptionKey.reveal(),
  }
}

function listen(server: Server, port: number, host: string): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    const onError = (cause: NodeJS.ErrnoException): void => {
      const what =
        cause.code === 'EADDRINUSE' ? `Port ${port} is in use` : `Cannot listen on ${host}, port ${port}`
      reject(
        new AdapterError(
          'ADP_CONFIGURATION',
          `${what} (${cause.code ?? cause.name}). Choose another with --port.`,
          { cause },
        ),
      )
    }
    server.once('error', onError)
    server.listen(port, host, () => {
      server.off('error', onError)
      resolve(server.address() as AddressInfo)
    })
  })
}

function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    // Node keeps a connection that falls idle after close() until its keep-alive time ends.
    const sweep = setInterval(() => server.closeIdleConnections(), 50)
    server.close(() => {
      clearInterval(sweep)
      resolve()
    })
    server.closeIdleConnections()
  })
}
