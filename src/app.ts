import { randomUUID } from 'node:crypto'

import { toInternalError } from './app/background/calls.ts'
import { createBackgroundWork } from './app/background/background-work.ts'
import { countRefusals, createForwarding, createListener } from './app/connections.ts'
import { type OpenedConsoleData, openInstanceConsole } from './app/console/open-console-data.ts'
import { addCertificateGauge, addGauges, addJournalGauges, addStageGauges } from './app/gauges.ts'
import { healthOf, readinessOf } from './app/health.ts'
import {
  createEchoKeeper,
  createSharedStores,
  openConfiguredJournal,
  type SharedStores,
} from './app/journal.ts'
import { batchLimitsOf, createApplyConfig, toPartners } from './app/partners.ts'
import { createReload, createReloadReport, type Reload } from './app/reload.ts'
import { createRoutes, describeProxies } from './app/routes.ts'
import { shareDescriptors, shortageOf } from './app/descriptors.ts'
import { createStageFile } from './app/stages.ts'
import { warnOfFailingWrites } from './app/warn-of-failing-writes.ts'
import { backgroundClock, systemClock } from './clock.ts'
import type { OnCompared } from './compare/live/exchange.ts'
import { certificateOf, type Config } from './config/index.ts'
import { createAddressList } from './http/address.ts'
import { createHeartbeat } from './heartbeat.ts'
import { createFailureScope } from './http/failure-scope.ts'
import { replaceCertificate } from './http/secure-server.ts'
import { startListening, stopServing, urlOf } from './http/server.ts'
import { createSlicing } from './http/slices.ts'
import { createSlowClients, usualPace } from './http/slow-clients.ts'
import { type Journal, LEASE_MS, openJournalLater } from './journal/index.ts'
import { createEvents } from './observability/events.ts'
import { createLogger, type Logger } from './observability/logger.ts'
import {
  createMetrics,
  type Metrics,
  type MetricsSnapshot,
  type MetricsText,
} from './observability/metrics.ts'
import type { Tracing } from './observability/tracing.ts'
import { createAcceptedCredentials, createTokenVerdicts } from './partners/credentials.ts'
import { authoriseWithout, createAuthorise, createRecogniseClient } from './partners/partner.ts'
import { createRegistry, longestReadBackMs } from './partners/registry.ts'
import { createByteBudget } from './proxy/byte-budget.ts'
import { createInFlight, type ProxyContext } from './proxy/context.ts'
import type { InstanceHealth } from './console/ports.ts'
import { createProxyApp } from './proxy/router.ts'
import { createUnmarkedCodes } from './reads/unmarked-codes.ts'
import { createFileStages, type LiveStages } from './rollout/decide.ts'
import { createEvidenceKeeper } from './rollout/evidence/keep-evidence.ts'
import { createLiveSeen, noSeen } from './rollout/evidence/seen-writes.ts'
import { createLiveGuards, noGuards } from './rollout/guards/live-guards.ts'
import { createStoredStages } from './rollout/live/stored-stages.ts'
import { DRAIN_MS } from './rollout/store/drive-change.ts'
import { createReadPlanner } from './translate/index.ts'
import { createRateLimits } from './upstream/index.ts'
import { createV3Client, createV3Reader } from './v3/index.ts'
import { createActiveRecords } from './writes/active-records.ts'
import { createEchoLearning } from './writes/context.ts'
import { createPredecessorWatch } from './writes/predecessors.ts'
import { createRecovery } from './writes/recovery.ts'

export interface AppOverrides {
  readonly logger?: Logger
  readonly logLevel?: string
  readonly nowMs?: () => number
  readonly openJournal?: () => Promise<Journal>
  /** The stages, which decide whether V2 or V3 serves a request. Default: the stored stages of the partners. */
  readonly stages?: LiveStages
  /** The number of this process among the processes that share a port. Every log line contains the number. */
  readonly worker?: number
  /** The nice value of the background thread, on Linux. Default: 19, which gives the thread only spare processor time. */
  readonly backgroundNice?: number
  readonly onCompared?: OnCompared
  readonly recorder?: ProxyContext['recorder']
  /** The tracing of requests, which the app closes when it stops. Default: no tracing. */
  readonly tracing?: Tracing | undefined
  /** Renders the metrics of all processes that share a port. Default: the metrics of this process. */
  readonly renderMetrics?: () => Promise<MetricsText>
  /** The length of the lease in milliseconds. After its end, other instances take over the batches of this instance. Default: 10 s. */
  readonly leaseMs?: number
  /** The longest wait for a free connection to an upstream, in milliseconds. Default: 10 s. */
  readonly acquireMs?: number
  readonly slowClients?: Partial<typeof usualPace>
}

export interface App {
  /** Opens the journal and starts to listen. Resolves with the address in use, because port 0 in the configuration selects a free port. */
  listen(): Promise<{ readonly url: string; readonly port: number }>
  /**
   * Loads another configuration for all requests that arrive afterwards. No request fails because of a reload. The result lists the keys
   * that need a restart. Reloads run one at a time. Calls during a reload share one more reload, which uses the `load` of the last call. If
   * the configuration cannot replace the running one, the running configuration stays in effect, and the call rejects with
   * `ADP_CONFIGURATION` and every fault, or with the error of `load`.
   */
  readonly reload: Reload
  /**
   * Waits for the current requests, and then closes the connections to the upstreams and the journal. After `listen.drainMs`, disconnects
   * clients that have not read their reply, but finishes their records. Further calls return the same promise.
   */
  close(): Promise<void>
  /** Logs an error that no other code handled, and ends the request or the batch that caused the error. */
  readonly onUnhandled: (cause: unknown) => void
  metrics(): Promise<MetricsSnapshot>
  /** Returns the data of the console, or `undefined` before `listen` or if no console or no journal is configured. */
  consoleData(): (OpenedConsoleData & { readonly health: () => InstanceHealth }) | undefined
}

/** Creates the adapter from a validated configuration. Does not open the journal or a port before `listen`. */
export function createApp(config: Config, overrides: AppOverrides = {}): App {
  const parts = compose(config, overrides)
  const { metrics, events, nowMs, background } = parts
  let ready = false
  let running: Promise<Running> | undefined
  let started: Running | undefined
  const apply = createApplyConfig(
    { config, partners: parts.partners },
    {
      registry: parts.registry,
      tokenRequests: parts.tokenRequests,
      rateLimits: parts.rateLimits,
      journal: async () => (await running)?.journal,
      onApplied: (next) => {
        parts.resize(next)
        background.reload(next)
        started?.renewCertificate(next)
        started?.recovery.retryWaiting()
      },
    },
  )
  // A worker does not report reloads, because the process that started the workers reports them.
  const report =
    overrides.worker === undefined ? createReloadReport(events, metrics.addReloads(nowMs)) : undefined
  let stopped: Promise<void> | undefined
  const close = (): Promise<void> => {
    ready = false
    return (stopped ??= stop(parts, running))
  }
  return {
    listen: async () => {
      // Runs first, because an unusable proxy in the environment must prevent the start.
      const proxies = describeProxies(config)
      started = await (running ??= open(parts, overrides, () => ready))
      const { server, recovery, keeper, guards, console } = started
      const { tls, host, port: wanted } = config.listen
      const port = await startListening(server, wanted, host).catch(async (cause: unknown) => {
        await close()
        throw cause
      })
      recovery.start()
      for (const work of [keeper, guards, parts.evidence, parts.seen, console])
        parts.heartbeat.add(...(work?.duties ?? []))
      ready = true
      const url = urlOf({ tls, host, port })
      events.started({ url, ...(proxies.length > 0 && { proxies }) })
      return { url, port }
    },
    reload: createReload(apply, report),
    close,
    onUnhandled: (cause) => {
      events.internalError(toInternalError(cause))
      parts.exchange.failures.fail(cause)
    },
    metrics: metrics.snapshot,
    consoleData: () =>
      started?.console && {
        ...started.console.data,
        health: () => healthOf(started?.journal, started?.stages),
      },
  }
}

type Parts = ReturnType<typeof compose>
type Running = Awaited<ReturnType<typeof open>>

function compose(config: Config, overrides: AppOverrides) {
  const { v3 } = config.upstreams
  const { tracing, acquireMs } = overrides
  const pace = { ...usualPace, ...overrides.slowClients }
  const nowMs = overrides.nowMs ?? Date.now
  const metrics = createMetrics(() => registry.partners().map(({ id }) => id))
  const logger = overrides.logger ?? createLogger(overrides.logLevel ?? 'info', undefined, overrides.worker)
  const events = warnOfFailingWrites(
    createEvents(logger, metrics.instruments, tracing?.addEvent),
    backgroundClock,
  )
  const routes = createRoutes(config, events)
  const heartbeat = createHeartbeat(backgroundClock, events.workFailed)
  const slicing = createSlicing()

  // There are no shared stores if the caller opens the journal, because the caller's journal may not have a database.
  const stores =
    config.journal.url === 'none' || overrides.openJournal !== undefined ? undefined : createSharedStores()
  const { evidence, seen } = createObservation(stores, metrics)
  const rateLimits = createRateLimits(
    systemClock,
    (priority, admission) =>
      metrics.queued({
        priority,
        waitedMs: admission.waitedMs,
        refused: admission.admitted ? undefined : admission.reason,
      }),
    stores?.slotsOf,
  )
  const byteBudget = createByteBudget(config.limits.maxInFlightBytes, () =>
    metrics.shareRefused({ resource: 'bytes', reason: 'share' }),
  )

  const upstream = {
    baseUrl: v3.baseUrl,
    connections: v3.connections,
    timeouts: v3.timeouts,
    route: routes.v3,
    nowMs,
    clock: systemClock,
    onCall: metrics.called,
    trace: tracing && ((kind: string) => tracing.call(`V3 ${kind}`)),
    later: slicing.later,
  }
  const client = createV3Client(upstream)
  const reader = createV3Reader({
    ...upstream,
    acquireMs,
    onRefusal: countRefusals(metrics, 'read'),
  })
  const accepted = createAcceptedCredentials({
    accepted: (partner) => {
      seen.recordCredentials(partner, 'accepted')
      metrics.credentialsAccepted({ partner })
    },
    denied: (partner) => seen.recordCredentials(partner, 'refused'),
    ownDenied: (partner, what) => {
      seen.recordCredentials(partner, 'ownRefused')
      events.ownCredentialsDenied({ partner, what })
    },
  })
  const tokenRequests = {
    route: routes.v3,
    onFailed: (partner: string, isDenied: boolean) => {
      if (isDenied) accepted.ownDenied(partner, 'token')
      else events.tokenFailed({ partner })
    },
  }
  const partners = toPartners(config, tokenRequests)
  const registry = createRegistry(partners)
  const forwarding = { config, routes, accepted, byteBudget, metrics, events, nowMs, tracing, acquireMs }
  const { passThrough, relays, v2Reader } = createForwarding(forwarding)

  const background = createBackgroundWork({
    ...{ config, registry, rateLimits, accepted, metrics, events, nowMs },
    journal: stores && evidence && { slotsOf: stores.slotsOf, evidence },
    onCompared: overrides.onCompared,
    nice: overrides.backgroundNice,
    traceWork: tracing?.work,
  })
  const { comparison } = background

  // A reload replaces the whole object and never changes it, so that a request keeps the limits with which it began.
  let batchLimits = batchLimitsOf(config)
  const exchange = {
    ...{
      relays,
      v2Reader,
      passThrough,
      comparison,
      accepted,
      seen,
      byteBudget,
      slicing,
      events,
      tracing,
    },
    recorder: overrides.recorder,
    traceWork: tracing?.work,
    recognise: createRecogniseClient(registry.find),
    authorise: createAuthorise(rateLimits),
    rewriteLinks: config.passThrough.rewriteLinks,
    enterPartner: registry.enter,
    v3: client,
    upstream: v3.baseUrl.href,
    reader,
    verdicts: createTokenVerdicts(nowMs),
    orphans: new Map(),
    echoes: createEchoLearning(nowMs),
    onVisible: metrics.visible,
    active: createActiveRecords(),
    limits: () => batchLimits,
    failures: createFailureScope(),
    slowClients: createSlowClients(pace, systemClock),
    inFlight: createInFlight(),
    trustedProxies: createAddressList(config.listen.trustedProxies),
    publicUrl: config.listen.publicUrl,
    clock: systemClock,
    nowMs,
    newId: randomUUID,
  }
  const reads = {
    planner: createReadPlanner(nowMs),
    codes: createUnmarkedCodes(systemClock, events),
    reader,
    clock: systemClock,
  }
  addGauges(metrics, exchange, registry, rateLimits, {
    pass_through: passThrough,
    read: reader,
    relay: relays,
  })
  return {
    ...{ config, routes, nowMs, metrics, events, partners, tokenRequests, registry, rateLimits, pace },
    leaseMs: overrides.leaseMs ?? LEASE_MS,
    ...{ stores, evidence, seen, heartbeat, background, exchange, reads },
    upstreams: [relays, v2Reader, passThrough, client, reader],
    resize: (next: Config) => {
      batchLimits = batchLimitsOf(next)
      byteBudget.resize(next.limits.maxInFlightBytes)
    },
  }
}

function createObservation(stores: SharedStores | undefined, metrics: Metrics) {
  if (stores === undefined) return { evidence: undefined, seen: noSeen }
  const evidence = createEvidenceKeeper({ store: stores.evidence, onKept: metrics.evidenceKept })
  return { evidence, seen: createLiveSeen({ evidence, store: stores.rollout }) }
}

async function open(parts: Parts, overrides: AppOverrides, isReady: () => boolean) {
  const { config, metrics, events, registry, rateLimits, exchange } = parts
  const openNow = overrides.openJournal ?? (() => openConfiguredJournal(parts, overrides.tracing?.commit))
  // Does not wait for the journal if a partner has a V2, because V2 can serve requests without the journal.
  const opened = parts.partners.some(({ v2 }) => v2 !== undefined)
    ? await openJournalLater(openNow, events, systemClock)
    : await openNow()
  const console = openConsole(parts)
  const journal = console?.observe(opened) ?? opened
  addJournalGauges(metrics, journal, systemClock)
  const { stages, guards } = openStages(parts, journal)
  const keeper = createEchoKeeper(exchange.echoes, journal, config.upstreams.v3.baseUrl)
  await keeper.load()
  const context = {
    ...exchange,
    journal,
    predecessors: createPredecessorWatch(journal, systemClock),
    guards,
    noteUnrecorded: (partner: string) => {
      events.relayedUnrecorded({ partner })
      stages?.noteUnrecorded(partner)
    },
    stages: overrides.stages ?? stages ?? createFileStages(),
    reads: {
      ...parts.reads,
      // The getter reads the secret on demand, because the secret is unknown until the adapter has reached the journal.
      get linkSecret() {
        return journal.linkSecret
      },
    },
  }
  const recovery = createRecovery(
    context,
    (id, shown) => {
      const partner = registry.of(id)
      return partner === undefined ? 'partner' : authoriseWithout(partner, rateLimits, shown)
    },
    (...sent) => longestReadBackMs(registry, ...sent),
  )
  const page = { readers: config.listen.metrics, render: overrides.renderMetrics ?? metrics.render }
  const app = createProxyApp(context, () => readinessOf(isReady(), journal, stages), page)
  const descriptors = shareDescriptors(config)
  const warning = shortageOf(descriptors)
  if (warning !== undefined) events.configWarned({ warning })
  const limits = { headersMs: parts.pace.headersMs, maxConnections: descriptors?.clients }
  let { tls } = config.listen
  const server = createListener(app, limits, events, isReady, tls)
  addCertificateGauge(metrics, () => tls?.cert)
  const renewCertificate = (next: Config): void => {
    tls = next.listen.tls
    replaceCertificate(server, certificateOf(tls))
  }
  await stages?.start()
  return { journal, server, renewCertificate, recovery, keeper, stages, guards, console }
}

/** Opens the data of the console. Returns `undefined` if no console or no journal is configured. */
function openConsole({ config, stores, metrics, events, nowMs }: Parts) {
  if (config.console === undefined || stores === undefined) return undefined
  const { journal } = config
  const options = { journal, clock: backgroundClock, onFailure: events.consoleFailed }
  return openInstanceConsole(options, metrics, nowMs)
}

/**
 * The fraction of a lease for which an instance may use the stages that it has read. The last read under a lease takes place at most 0.8
 * lease lengths after the renewal, and other instances count the instance as live until 1.2 lease lengths after the renewal. The fraction
 * must therefore be below 0.4, so that no instance uses stages after the others have stopped waiting for it.
 */
const COUNTED_LEASES = 0.38

/** Creates the stages that the journal stores, and the guards. Without shared stores there are neither stored stages nor active guards. */
function openStages(parts: Parts, journal: Journal) {
  const { config, stores, registry, metrics, events, nowMs } = parts
  if (stores === undefined) return { stages: undefined, guards: noGuards }
  const stages = createStoredStages({
    ...{ events, metrics, clock: backgroundClock },
    store: stores.rollout,
    instance: () => journal.lease(),
    renewLease: () => journal.renewLease(),
    kept: createStageFile(config.journal),
    secret: () => stores.secret(),
    partners: () => registry.partners(),
    staleAfterMs: parts.leaseMs * COUNTED_LEASES,
    drainMs: DRAIN_MS,
    resendWindowMs: config.rollout.resendWindowMs,
  })
  addStageGauges(metrics, stages)
  const guards = createLiveGuards({
    store: stores.rollout,
    nowMs,
    actOf: (id) => registry.of(id)?.guard ?? 'back',
    events,
    metrics,
  })
  return { stages, guards }
}

/** Waits for the work in progress, and then closes the components of the adapter, each before the components that it depends on. */
async function stop(parts: Parts, running: Promise<Running> | undefined): Promise<void> {
  const { config, events, exchange, background } = parts
  const own = await running?.catch(() => undefined)
  if (own !== undefined) {
    await stopServing(own.server, {
      idle: () => exchange.inFlight.idle(),
      drainMs: config.listen.drainMs,
      onExpired: () => events.drainExpired({ requests: exchange.inFlight.count() }),
    })
    await own.recovery.stop()
    await background.close()
    await parts.heartbeat.stop()
    await own.stages?.stop()
    await own.console?.data.close()
  }
  await Promise.all([background, ...parts.upstreams].map((one) => one.close()))
  await own?.journal.close()
  await exchange.tracing?.close()
  events.stopped()
}
