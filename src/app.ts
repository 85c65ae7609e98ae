import { randomUUID } from 'node:crypto'
import type { Server } from 'node:http'

import { addGauges, addJournalGauges, addStageGauges } from './app/gauges.ts'
import { countRefusals, createForwarding, createListener } from './app/connections.ts'
import { createLateRolloutStore, createStages } from './app/create-stages.ts'
import { expectOwnStageFile } from './app/stage-file.ts'
import { noteCredentials, toPartners } from './app/partners.ts'
import {
  createEchoKeeper,
  type EchoKeeper,
  openConfiguredJournal,
  openJournalLater,
  createRateSharing,
} from './app/journal.ts'
import { warnOfFailingWrites } from './app/warn-of-failing-writes.ts'
import { createReload, type PreparedReload, type Reload, createReloadReport } from './app/create-reload.ts'
import { createReloadTarget } from './app/reload-target.ts'
import { toComparison } from './app/comparison/to-comparison.ts'
import { toRecording } from './app/to-recording.ts'
import type { OnCompared } from './compare/compared-exchange.ts'
import type { Config } from './config/index.ts'
import { createAddressList } from './http/address.ts'
import { createSlicing } from './http/slices.ts'
import { startListening, stopServing } from './http/server.ts'
import { createSlowClients } from './http/slow-clients.ts'
import type { Journal } from './journal/index.ts'
import { createEvents } from './observability/events.ts'
import { createLogger, type Logger } from './observability/logger.ts'
import { createMetrics, type MetricsSnapshot, type MetricsText } from './observability/metrics.ts'
import {
  authoriseWithout,
  createAuthorise,
  createRecogniseClient,
  createAcceptedCredentials,
  createIdentify,
  createRegistry,
  longestReadBackMs,
  createQueueKeys,
  createTokenVerdicts,
} from './partners/index.ts'
import { createByteBudget, createInFlight, createProxyApp, type Readiness } from './proxy/index.ts'
import { createUnmarkedCodes } from './reads/index.ts'
import {
  createActiveRecords,
  createEchoLearning,
  createRecovery,
  createPredecessorWatch,
  type Recovery,
} from './writes/index.ts'
import {
  createEvidenceKeeper,
  createFileStages,
  createLiveGuards,
  type LiveGuards,
  type LiveStages,
  noGuards,
  type StoredStages,
} from './rollout/index.ts'
import { createLiveSeen, noSeen } from './rollout/seen/live-seen.ts'
import { createReadPlanner } from './translate/index.ts'
import { createRateLimits } from './upstream/index.ts'
import { type BatchLimits, defaultBatchLimits } from './v2/index.ts'
import { createV3Client, createV3Reader } from './v3/index.ts'
import { backgroundClock, systemClock } from './clock.ts'

/** Parts that a caller may replace, mostly to observe or to fix time and ids. */
export interface AppOverrides {
  readonly logger?: Logger
  readonly logLevel?: string
  readonly nowMs?: () => number
  readonly newId?: () => string
  readonly openJournal?: () => Promise<Journal>
  /** Decides which side serves a request, in place of the stages of the partners. */
  readonly stages?: LiveStages
  /** The number of this process among those that share a port: in every line of the log. */
  readonly worker?: number
  /** The nice value of the thread that compares, on Linux. Default 19: it gets the processor time that the others leave. */
  readonly compareNice?: number
  /** Observes what live comparisons find. */
  readonly onCompared?: OnCompared
  /** What `/metrics` shows instead of this process's own: those of all that share a port. */
  readonly renderMetrics?: () => Promise<MetricsText>
}

/** The running adapter. */
export interface App {
  /** Starts to listen; resolves with the address in use (port 0 in the configuration takes a free one). */
  listen(): Promise<{ readonly url: string; readonly port: number }>
  /**
   * Loads another configuration and makes it the running one for requests that come from now on; no request fails. Partners and
   * limits change, what needs a restart is named in the result. One at a time: of several calls during a reload the last one counts,
   * and all of them get its result. Rejects with `ADP_CONFIGURATION` and every fault, or with the error of `load`; then everything
   * is as before.
   */
  readonly reload: Reload
  /** As `reload` in two steps, for several processes that change together; reports nothing. */
  prepareReload(next: Config): Promise<PreparedReload>
  /**
   * Stops accepting, lets what is under way finish, then closes the connections to the upstream and the journal. Clients that
   * have not read their reply after `listen.drainMs` are cut off; records go on to their own end. May be called twice.
   */
  close(): Promise<void>
  /** What `/metrics` shows, as data. */
  metrics(): Promise<MetricsSnapshot>
}

/** The composition root: builds the adapter from a checked configuration. Opens nothing before `listen`. */
export function createApp(config: Config, overrides: AppOverrides = {}): App {
  const { v3 } = config.upstreams
  const nowMs = overrides.nowMs ?? Date.now
  const metrics = createMetrics(() => registry.partners().map(({ id }) => id))
  const logger = overrides.logger ?? createLogger(overrides.logLevel ?? 'info', undefined, overrides.worker)
  const events = warnOfFailingWrites(createEvents(logger, metrics.instruments), backgroundClock)
  const slicing = createSlicing()
  const upstream = {
    baseUrl: v3.baseUrl,
    connections: v3.connections,
    timeouts: v3.timeouts,
    nowMs,
    clock: systemClock,
    onCall: metrics.called,
    later: slicing.later,
  }
  const client = createV3Client(upstream)
  const rateLimit = createRateSharing()
  // A journal that a caller opens is not known to have a store of slots and stages.
  const hasStore = config.journal.url !== 'none' && overrides.openJournal === undefined
  const rollout = createLateRolloutStore()
  const rateLimits = createRateLimits(
    systemClock,
    (priority, admission) =>
      metrics.queued({
        priority,
        waitedMs: admission.waitedMs,
        refused: admission.admitted ? undefined : admission.reason,
      }),
    hasStore ? rateLimit.slotsOf : undefined,
  )
  const queueKeys = createQueueKeys()
  const toBatchLimits = (limits: Config['limits']): BatchLimits => ({
    ...defaultBatchLimits,
    ...limits,
    maxPartBytes: config.tuning.maxPartBytes,
  })
  // Replaced as a whole: a request keeps the limits that it began with.
  let batchLimits = toBatchLimits(config.limits)
  const { slowClients } = config.tuning
  const byteBudget = createByteBudget(config.limits.maxInFlightBytes, () =>
    metrics.shareRefused({ resource: 'bytes', reason: 'share' }),
  )
  const reads = {
    planner: createReadPlanner(nowMs),
    codes: createUnmarkedCodes(systemClock, events),
    reader: createV3Reader({
      ...upstream,
      acquireMs: config.tuning.acquireMs,
      onRefusal: countRefusals(metrics, 'read'),
    }),
    clock: systemClock,
  }
  const evidence = hasStore
    ? createEvidenceKeeper({
        store: rollout.evidence,
        clock: backgroundClock,
        onFailure: (partner, code) => events.evidenceNotKept({ partner, code }),
        onKept: metrics.evidenceKept,
      })
    : undefined
  const seen =
    evidence === undefined
      ? noSeen
      : createLiveSeen({
          evidence,
          store: rollout.store,
          clock: backgroundClock,
          onFailure: (partner, code) => events.seenNotKept({ partner, code }),
        })
  const accepted = noteCredentials(createAcceptedCredentials(), seen, queueKeys, events)
  const { passThrough, relays } = createForwarding({
    config,
    accepted,
    queueKeys,
    byteBudget,
    metrics,
    events,
    nowMs,
  })
  const partners = toPartners(config)
  const registry = createRegistry(partners)
  const comparison = toComparison({
    config,
    limits: () => batchLimits,
    registry,
    rateLimits,
    accepted,
    journal: evidence && { pace: rateLimit.store, evidence },
    metrics,
    events,
    nowMs,
    onCompared: overrides.onCompared,
    nice: overrides.compareNice,
  })
  const recording = toRecording({ config, slicing, metrics, events, clock: backgroundClock, nowMs })
  const identify = createIdentify()
  const shared = {
    recognise: createRecogniseClient(registry.find, identify),
    authorise: createAuthorise(rateLimits),
    relays,
    comparison,
    recording,
    rewriteLinks: config.passThrough.rewriteLinks,
    enterPartner: registry.enter,
    v3: client,
    passThrough,
    upstream: v3.baseUrl.href,
    reader: reads.reader,
    accepted,
    seen,
    verdicts: createTokenVerdicts(nowMs),
    orphans: new Map(),
    echoes: createEchoLearning(nowMs),
    onVisible: metrics.visible,
    active: createActiveRecords(),
    limits: () => batchLimits,
    byteBudget,
    queueKeys,
    slowClients: createSlowClients(slowClients, systemClock),
    slicing,
    inFlight: createInFlight(),
    trustedProxies: createAddressList(config.listen.trustedProxies),
    events,
    clock: systemClock,
    nowMs,
    newId: overrides.newId ?? randomUUID,
  }
  let ready = false
  // Of several processes the one that started them reports.
  const report =
    overrides.worker === undefined ? createReloadReport(events, metrics.addReloads(nowMs)) : undefined
  addGauges(metrics, shared, registry, rateLimits, {
    pass_through: passThrough,
    read: reads.reader,
    relay: relays,
  })
  const start = async (): Promise<Running> => {
    await expectOwnStageFile(config.journal)
    const open = overrides.openJournal ?? (() => openConfiguredJournal(config, events, rateLimit, rollout))
    // What V2 serves needs no journal.
    const journal = partners.some(({ v2: own }) => own !== undefined)
      ? await openJournalLater(open, events, systemClock)
      : await open()
    addJournalGauges(metrics, journal, systemClock)
    // A journal that a caller opens is not known to have a store of stages.
    const stages =
      journal.durable && overrides.openJournal === undefined
        ? createStages({ config, late: rollout, journal, registry, events, metrics })
        : undefined
    if (stages !== undefined) addStageGauges(metrics, stages)
    const guards =
      stages === undefined
        ? noGuards
        : createLiveGuards({
            store: rollout.store,
            action: config.rollout.guards.action,
            coolDownMs: config.tuning.coolDownMs,
            clock: backgroundClock,
            nowMs,
            fileStageOf: (id) => registry.of(id)?.fileStage,
            events: {
              acted: (event) => events.guardActed(event),
              counted: (event) => metrics.guardCounted(event),
              failed: (event) => events.guardsFailed(event),
            },
          })
    const keeper = createEchoKeeper(shared.echoes, journal, v3.baseUrl, systemClock)
    await keeper.load()
    // Read when it is needed: a journal that could not be reached yet does not know it.
    const linkSecret = (): Uint8Array => linkSecretOf(config) ?? journal.linkSecret
    const context = {
      ...shared,
      journal,
      predecessors: createPredecessorWatch(journal, systemClock),
      guards,
      noteUnrecorded: (partner: string) => {
        events.relayedUnrecorded({ partner })
        stages?.noteUnrecorded(partner)
      },
      stages: overrides.stages ?? stages ?? createFileStages(() => journal.linkSecret),
      reads: {
        ...reads,
        get linkSecret() {
          return linkSecret()
        },
      },
    }
    const recovery = createRecovery(
      context,
      (id, shown) => {
        const partner = registry.of(id)
        return partner === undefined ? 'partner' : authoriseWithout(partner, rateLimits, identify, shown)
      },
      (id) => longestReadBackMs(registry, id),
    )
    const page = { readers: config.listen.metrics, render: overrides.renderMetrics ?? metrics.render }
    const app = createProxyApp(context, () => readinessOf(ready, journal, stages), page)
    const server = createListener(app, slowClients, events, () => ready)
    await stages?.start()
    started = { journal, recovery, server, keeper, stages, guards }
    return started
  }
  let running: Promise<Running> | undefined
  let started: Running | undefined
  const target = createReloadTarget(
    { config, partners },
    {
      registry,
      rateLimits,
      journal: async () => (await running)?.journal,
      onCommit: (next) => {
        batchLimits = toBatchLimits(next.limits)
        byteBudget.resize(next.limits.maxInFlightBytes)
        comparison.reload(next)
        recording.reload(next)
        started?.recovery.retryWaiting()
      },
    },
  )
  const stop = async (): Promise<void> => {
    ready = false
    const parts = await running?.catch(() => undefined)
    if (parts !== undefined) {
      await stopServing(parts.server, {
        idle: () => shared.inFlight.idle(),
        drainMs: config.listen.drainMs,
        onExpired: () => events.drainExpired({ requests: shared.inFlight.count() }),
      })
      await parts.recovery.stop()
      await parts.keeper.stop()
      await comparison.close()
      await recording.close()
      await parts.guards.stop()
      await seen.stop()
      await evidence?.stop()
      await parts.stages?.stop()
    }
    const open = [relays, passThrough, client, reads.reader]
    await Promise.all([comparison.close(), ...open.map((one) => one.close())])
    await parts?.journal.close()
    events.stopped()
  }
  let stopped: Promise<void> | undefined
  const close = (): Promise<void> => (stopped ??= stop())
  return {
    listen: async () => {
      const { server, recovery, keeper, guards } = await (running ??= start())
      const port = await startListening(server, config.listen.port, config.listen.host).catch(
        async (cause: unknown) => {
          await close()
          throw cause
        },
      )
      recovery.start()
      keeper.start()
      guards.start()
      evidence?.start()
      seen.start()
      recording.start()
      ready = true
      const { host } = config.listen
      const url = `http://${host.includes(':') ? `[${host}]` : host}:${port}`
      events.started({ url })
      return { url, port }
    },
    reload: createReload(target, report),
    prepareReload: target.prepare,
    close,
    metrics: metrics.snapshot,
  }
}

interface Running {
  readonly keeper: EchoKeeper
  readonly journal: Journal
  readonly recovery: Recovery
  readonly server: Server
  readonly stages: StoredStages | undefined
  readonly guards: LiveGuards
}

/** The configured secret of next links, for instances that share no journal. */
function linkSecretOf({ listen }: Config): Uint8Array | undefined {
  return listen.linkSecret === undefined ? undefined : Buffer.from(listen.linkSecret.reveal())
}

/** Whether requests are welcome, and if not why. */
function readinessOf(ready: boolean, journal: Journal, stages: StoredStages | undefined): Readiness {
  if (!ready) return 'stopping'
  if (stages?.isReady() === false) return 'stages unknown'
  // What V2 serves needs no journal: without this instance those partners would not be served.
  if (stages?.describe().some(({ stage }) => stage === 'legacy') === true) return 'ready'
  if (!journal.isAvailable()) return 'journal unavailable'
  return journal.lease() === undefined ? 'journal lease lost' : 'ready'
}
