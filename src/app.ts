import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'

import { callsPerSecondOf, type Config, type PartnerConfig, Secret } from './config/index.ts'
import { answerUnreadable } from './http/answer-unreadable.ts'
import { startListening, stopServing } from './http/server.ts'
import { createEvents, type Events } from './observability/events.ts'
import { createLogger } from './observability/logger.ts'
import { createMetrics, type Metrics } from './observability/metrics.ts'
import {
  createAuthorise,
  createByteBudget,
  createInFlight,
  createPassThrough,
  createProxyApp,
  type Partner,
  type ProxyContext,
} from './proxy/index.ts'
import { createReadPlanner } from './translate/index.ts'
import { defaultBatchLimits } from './v2/index.ts'
import {
  createThrottles,
  createTokenSource,
  createV3Client,
  createV3Reader,
  fetchToken,
  systemClock,
  type Throttles,
  type TokenSource,
} from './v3/index.ts'

/**
 * Idle time of client connections: above that of usual load balancers, which would otherwise reuse a connection at the
 * moment it closes and repeat a batch.
 */
const CLIENT_IDLE_MS = 75_000
/** Room for a next link (64 KiB) and for a filter over a class; Node's 16 KiB are too few. */
const MAX_HEADER_BYTES = 131_072

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
  /**
   * Stops accepting, lets what is under way finish, then closes the connections to the upstream. Clients that have not read
   * their reply after `listen.drainMs` are cut off; records go on to their own end. May be called twice.
   */
  close(): Promise<void>
}

/** The composition root: builds the adapter from a checked configuration. Opens nothing before `listen`. */
export function createApp(config: Config, overrides: AppOverrides = {}): App {
  const { v3 } = config.upstreams
  const nowMs = overrides.nowMs ?? Date.now
  const metrics = createMetrics()
  const events = metrics.counting(
    overrides.events ?? createEvents(createLogger(overrides.logLevel ?? 'info')),
  )
  const upstream = {
    baseUrl: v3.baseUrl,
    connections: v3.connections,
    timeouts: v3.timeouts,
    nowMs,
    clock: systemClock,
    onCall: metrics.called,
  }
  const client = createV3Client(upstream)
  const reads = { planner: createReadPlanner(nowMs), reader: createV3Reader(upstream), clock: systemClock }
  const throttles = createThrottles(systemClock, (priority, admission) =>
    metrics.queued({
      priority,
      waitedMs: admission.waitedMs,
      refused: admission.admitted ? undefined : admission.reason,
    }),
  )
  const passThrough = createPassThrough({
    baseUrl: v3.baseUrl,
    allow: config.passThrough.allow,
    rewriteLinks: config.passThrough.rewriteLinks,
    connections: v3.connections,
    timeoutMs: v3.timeouts.headersMs,
    onCall: metrics.called,
    events,
    clock: systemClock,
    nowMs,
  })
  const context = {
    authorise: createAuthorise(
      config.partners.map((partner) => toPartner(partner, callsPerSecondOf(partner, config))),
      throttles,
    ),
    v3: client,
    reads,
    limits: { ...defaultBatchLimits, ...config.limits },
    byteBudget: createByteBudget(config.limits.maxInFlightBytes),
    inFlight: createInFlight(),
    serviceHosts: [v3.baseUrl.hostname.toLowerCase()],
    events,
    nowMs,
    newId: overrides.newId ?? randomUUID,
  }
  let ready = false
  addGauges(metrics, context, throttles)
  const page = { readers: config.listen.metrics, render: metrics.render }
  const app = createProxyApp(context, passThrough, () => ready, page)
  const server = createServer({ maxHeaderSize: MAX_HEADER_BYTES }, app)
  server.on('clientError', answerUnreadable)
  server.keepAliveTimeout = CLIENT_IDLE_MS
  // A kept connection may still ask while the adapter stops: it is answered, and then closed.
  server.prependListener('request', (_request, response) => {
    if (!ready) response.shouldKeepAlive = false
  })
  const stop = async (): Promise<void> => {
    ready = false
    await stopServing(server, {
      idle: () => context.inFlight.idle(),
      drainMs: config.listen.drainMs,
      onExpired: () => events.drainExpired({ requests: context.inFlight.count() }),
    })
    passThrough.close()
    await Promise.all([client.close(), reads.reader.close()])
    events.stopped()
  }
  let stopped: Promise<void> | undefined
  return {
    listen: async () => {
      const port = await startListening(server, config.listen.port, config.listen.host)
      ready = true
      const { host } = config.listen
      const url = `http://${host.includes(':') ? `[${host}]` : host}:${port}`
      events.started({ url })
      return { url, port }
    },
    close: () => (stopped ??= stop()),
  }
}

/** What is true at the moment when somebody asks. */
function addGauges(
  metrics: Metrics,
  { inFlight, byteBudget }: Pick<ProxyContext, 'inFlight' | 'byteBudget'>,
  throttles: Throttles,
): void {
  metrics.addGauge({ name: 'in_flight_requests', help: 'Requests that are being handled.' }, () =>
    inFlight.count(),
  )
  metrics.addGauge({ name: 'in_flight_bytes', help: 'Bytes of request bodies that are held.' }, () =>
    byteBudget.held(),
  )
  metrics.addGauge(
    { name: 'queue_length', help: 'Calls that wait for their turn.', label: 'priority' },
    () => ({
      write: throttles.waiting('write'),
      read: throttles.waiting('read'),
      comparison: throttles.waiting('comparison'),
    }),
  )
}

function toPartner(partner: PartnerConfig, callsPerSecond: number | undefined): Partner {
  const { v3 } = partner
  const { subscriptionKey } = v3
  return {
    id: partner.id,
    match: partner.match,
    layout: partner.layout,
    ...partner.quirks,
    mapping: {
      attendeeType: v3.attendeeType,
      eventType: v3.eventType,
      codeType: v3.codeType,
      changeProcessName: partner.changeProcessName,
      unmappedFields: partner.unmappedFields,
    },
    reads: partner.reads,
    bodyProfile: v3.bodyProfile,
    concurrency: v3.concurrency,
    batch:
      v3.writeMode === 'single'
        ? undefined
        : {
            mode: v3.writeMode,
            format: v3.batchFormat,
            maxRecords: v3.maxBatchRecords,
            concurrency: v3.concurrency,
          },
    budgetMs: v3.budgetMs,
    callsPerSecond,
    refuseOverBudget: v3.refuseOverBudget,
    subscriptionKey: subscriptionKey === undefined ? undefined : () => subscriptionKey.reveal(),
    tokens: toTokens(v3.auth),
  }
}

/** The tokens of a partner with client credentials; the schema has seen to it that they are complete. */
function toTokens(auth: PartnerConfig['v3']['auth']): TokenSource | undefined {
  const { mode, tokenUrl, clientId, clientSecret, scope, organisation } = auth
  if (mode !== 'clientCredentials' || tokenUrl === undefined || clientId === undefined) return undefined
  if (clientSecret === undefined || scope === undefined) return undefined
  const client = {
    tokenUrl,
    clientId: clientId instanceof Secret ? clientId.reveal() : clientId,
    clientSecret: () => clientSecret.reveal(),
    scope,
    organisation,
  }
  return createTokenSource({ fetch: () => fetchToken(client), nowMs: () => systemClock.nowMs() })
}
