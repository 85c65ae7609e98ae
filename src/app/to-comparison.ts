import { randomBytes } from 'node:crypto'

import {
  createAskSides,
  createChecks,
  createLiveComparison,
  createPacedSides,
  type LiveComparison,
} from '../compare/live/index.ts'
import type { LiveLearning } from '../compare/learn/index.ts'
import type { OnCompared } from '../compare/compared-exchange.ts'
import type { Config } from '../config/index.ts'
import type { Slicing } from '../http/slices.ts'
import { type Events, framesOf } from '../observability/events.ts'
import type { Metrics } from '../observability/metrics.ts'
import { statusClass } from '../observability/instruments.ts'
import { type AcceptedCredentials, authoriseClient } from '../partners/index.ts'
import { createUnmarkedCodes } from '../reads/index.ts'
import { type ReadPlanner, toV3RegistrationPath, toV3RegistrationQuery } from '../translate/index.ts'
import { createFairGate, createWholeReader, type RateLimits } from '../upstream/index.ts'
import type { BatchLimits } from '../v2/index.ts'
import { createSharedReader, createV3Reader } from '../v3/index.ts'
import { backgroundClock } from '../clock.ts'
import { learnFrom } from './to-learning.ts'
import { createLiveOwnRules } from './own-rules.ts'

export interface ComparisonParts {
  readonly config: Config
  readonly limits: () => BatchLimits
  readonly planner: ReadPlanner
  readonly rateLimits: RateLimits
  readonly slicing: Slicing
  readonly accepted: AcceptedCredentials
  readonly metrics: Pick<Metrics, 'compare' | 'addGauge'>
  readonly events: Pick<Events, 'internalError' | 'unmarkedCodesUnknown'>
  readonly nowMs: () => number
  /** Counts what V2's replies show of the partner's interface. */
  readonly learning: Pick<LiveLearning, 'observe'>
  /** Takes what was compared. */
  readonly onCompared: OnCompared
}

/** A comparison whose rules follow the configuration. */
export interface ReloadableComparison extends LiveComparison {
  /** Another configuration is in use. */
  reload(config: Config): void
}

/** Connections to each side, besides those of clients. */
const CONNECTIONS = 4
const MAX_REPLY_BYTES = 4_194_304

/** The comparison of live exchanges, with connections of its own to both sides. */
export function toComparison(parts: ComparisonParts): ReloadableComparison {
  const { config, limits, planner, slicing, metrics, events, nowMs, rateLimits } = parts
  const { v3 } = config.upstreams
  const clock = backgroundClock
  const stop = new AbortController()
  const rules = createLiveOwnRules(config, nowMs)
  const sides = createPacedSides(clock, stop.signal)
  const upstream = { baseUrl: v3.baseUrl, connections: CONNECTIONS, timeouts: v3.timeouts, nowMs, clock }
  const gate = createFairGate({ places: CONNECTIONS, clock, onRefusal: () => undefined })
  const reader = createSharedReader(
    createV3Reader({ ...upstream, later: slicing.later }),
    gate,
    v3.timeouts.acquireMs,
    clock,
  )
  const whole = createWholeReader({
    connections: CONNECTIONS,
    timeouts: v3.timeouts,
    maxBytes: MAX_REPLY_BYTES,
    clock,
  })
  const codes = createUnmarkedCodes(clock, events)
  const ask = createAskSides({
    // Signs next links of answers that no client gets.
    reads: { planner, codes, reader, clock, linkSecret: randomBytes(32) },
    whole,
    authorise: (client) => authoriseClient(client, rateLimits),
    sides,
    clock,
    stopped: stop.signal,
    toV3Registrations: (path, query) => toRegistrations(v3.baseUrl, path, query),
    onCall: (partner, side, status) =>
      metrics.compare.called(partner, side, status === undefined ? 'none' : statusClass(status)),
    onAccepted: (client) => parts.accepted.accept(client),
  })
  const openCheck = createChecks(
    {
      offered: metrics.compare.offered,
      ended: (partner, check, end) => {
        if (end.kind === 'compared') metrics.compare.compared(end.exchange)
        else metrics.compare[end.kind](partner, check, end.reason)
      },
    },
    parts.onCompared,
  )
  const comparison = createLiveComparison({
    limits,
    open: () => slicing.open(),
    later: slicing.later,
    clock,
    ask,
    sides,
    openCheck,
    rulesOf: ({ id }) => rules.of(id),
    isContinued: (query) => planner.tokenOf(query) !== undefined,
    onExchange: (exchange) => {
      learnFrom(parts.learning, exchange)
    },
    onFailed: (cause) =>
      events.internalError({
        errorName: cause instanceof Error ? cause.name : typeof cause,
        stack: cause instanceof Error ? framesOf(cause) : [],
      }),
    random: Math.random,
    stop,
  })
  metrics.addGauge(
    { name: 'compare_waiting', help: 'Exchanges that wait to be compared, and checks under way.' },
    () => comparison.waiting(),
  )
  metrics.addGauge(
    {
      name: 'compare_silent',
      help: '1 for a side that comparisons leave alone, since it has answered 429.',
      labels: ['partner', 'side'],
    },
    () => sides.silent().map((labels) => ({ labels, value: 1 })),
  )
  const close = async (): Promise<void> => {
    const closed = comparison.close()
    await whole.close()
    await closed
    await reader.close()
  }
  let closed: Promise<void> | undefined
  return { ...comparison, close: () => (closed ??= close()), reload: (next) => rules.replace(next) }
}

/** Undefined: V3 has no such address, or the query cannot be read. */
function toRegistrations(baseUrl: URL, path: string, query: string): URL | undefined {
  try {
    const resource = toV3RegistrationPath(decodeURIComponent(path))
    if (resource === undefined) return undefined
    const url = new URL(`${baseUrl.href.replace(/\/$/, '')}${resource}`)
    const own = toV3RegistrationQuery(query)
    if (own !== '') url.search = `?${own}`
    return url
  } catch {
    // Its client has the error of the side that served it.
    return undefined
  }
}
