import { setImmediate as nextTurn } from 'node:timers/promises'

import { AggregatorRegistry, collectDefaultMetrics, Registry } from 'prom-client'

import { createInstruments, type Instruments, statusClass, unlisted } from './instruments.ts'

/** A finished call to an upstream. `status` is `undefined` if no reply head arrived. */
interface CallSeen<Kind extends string> {
  readonly kind: Kind
  readonly status: number | undefined
  readonly durationMs: number
}

export interface MetricsText {
  readonly contentType: string
  readonly text: string
}

/** Metrics as data. Workers send them in this form to the primary process, which adds them up. */
export type MetricsSnapshot = readonly object[]

/** A value of a metric. For a histogram, `metricName` is the name of one of its series, such as `…_count`. */
interface CounterValue {
  readonly value: number
  readonly labels: Readonly<Partial<Record<string, string | number>>>
  readonly metricName?: string
}

/**
 * The metrics of one process. Label values are ids of partners and words from fixed lists, but never values of records (product contract
 * 8).
 */
export type Metrics = ReturnType<typeof createMetrics>

const partner = unlisted
const priority = ['write', 'read', 'comparison'] as const
const side = ['v2', 'v3'] as const
const stageWait = ['changing', 'stale', 'asking'] as const
/** The gauges of prom-client whose names wrongly end in `_total`, as counters do. `nodejs_active_resources` reports the same objects. */
const misnamed = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
]

/** Creates the metrics (docs/metrics.md). The counters of `partners` are rendered with 0 before anything is counted. */
export function createMetrics(partners: () => readonly string[] = () => []) {
  const registry = new Registry()
  const instruments = createInstruments(registry)
  const { counter, timer } = instruments
  const status = unlisted
  const calls = timer('v3_call_duration', 'Time from a call to V3 to the head of its reply.', { kind: unlisted, status }) // prettier-ignore
  const relayed = timer('v2_call_duration', 'Time from a call to V2 to the head of its reply.', { kind: unlisted, status }) // prettier-ignore
  const waits = timer('queue_wait', 'Time that calls waited in the queue before they were sent.', {
    priority,
  })
  const turnedAway = counter('queue_refused_total', 'Calls that left the queue without being sent.', { priority, reason: ['full', 'deadline', 'gone'] }) // prettier-ignore
  const visible = timer('read_back_visible', 'Time from the loss of a reply to the read-back that showed the mark.', {}) // prettier-ignore
  const guardTrials = counter('stage_guard_trials_total', 'Writes that guards counted at canary.', { partner, side }) // prettier-ignore
  const guardBad = counter('stage_guard_bad_trials_total', 'Counted writes with a bad outcome.', { partner, side, kind: ['unknown', 'serverError', 'refused', 'slow'] }) // prettier-ignore
  const evidence = counter('compare_evidence_total', 'Compared requests by whether the journal stored their evidence.', { partner, fate: ['kept', 'lost'] }) // prettier-ignore
  let observesProcess = false
  /** The partners whose series exist. Each series is created only once, because a partner has more than a hundred of them. */
  const begun = new Set<string>()
  const prepare = (): void => {
    for (const id of partners()) {
      if (!begun.has(id)) instruments.begin(id)
      begun.add(id)
    }
    if (observesProcess) return
    collectDefaultMetrics({ register: registry })
    for (const name of misnamed) registry.removeSingleMetric(name)
    observesProcess = true
  }
  return {
    instruments,
    called: ({ kind, status, durationMs }: CallSeen<'write' | 'batch' | 'read' | 'passThrough'>): void =>
      calls(
        { kind: kind === 'passThrough' ? 'pass_through' : kind, status: statusClass(status) },
        durationMs,
      ),
    relayed: ({ kind, status, durationMs }: CallSeen<'read' | 'write'>): void =>
      relayed({ kind, status: statusClass(status) }, durationMs),
    /** Adds the time that a call waited for the rate limit. `refused` is `undefined` if the call was sent. */
    queued: (wait: {
      readonly priority: (typeof priority)[number]
      readonly waitedMs: number
      readonly refused: 'full' | 'deadline' | 'gone' | undefined
    }): void => {
      if (wait.refused === undefined) waits(wait, wait.waitedMs)
      else turnedAway({ priority: wait.priority, reason: wait.refused })
    },
    /** Adds the time in milliseconds from the loss of a reply to the read-back that showed the mark. */
    visible: (afterMs: number): void => visible({}, afterMs),
    shareRefused: counter('shares_refused_total', 'Requests that were refused a shared connection or shared memory.', { resource: ['pass_through', 'read', 'relay', 'bytes'], reason: ['share', 'wait', 'gone'] }), // prettier-ignore
    /** Counts a write that the guards judge. `outcome` is `good` or the kind of fault. */
    guardCounted: (trial: {
      readonly partner: string
      readonly side: 'v2' | 'v3'
      readonly outcome: 'good' | 'unknown' | 'serverError' | 'refused' | 'slow'
    }): void => {
      guardTrials(trial)
      if (trial.outcome !== 'good') guardBad({ ...trial, kind: trial.outcome })
    },
    credentialsAccepted: counter('credentials_accepted_total', 'Requests whose credentials V3 accepted.', { partner }), // prettier-ignore
    evidenceKept: (id: string, requests: number, isKept: boolean): void =>
      evidence({ partner: id, fate: isKept ? 'kept' : 'lost' }, requests),
    stageHeld: counter('stage_held_total', 'Writes that waited until a change or a read of the stages was finished.', { partner, reason: stageWait }), // prettier-ignore
    stageRefused: counter('stage_refused_total', 'Requests that were refused with 503 because of the stage of their partner.', { partner, reason: [...stageWait, 'overloaded'] }), // prettier-ignore
    compare: createCompareMetrics(instruments),
    addGauge: instruments.gauge,
    addReloads: (nowMs: () => number): ReloadMetrics => createReloadMetrics(instruments, nowMs),
    /** Returns the metrics as Prometheus text. From the first call on, they include the metrics of the Node.js process. */
    render: async (): Promise<MetricsText> => {
      prepare()
      return {
        contentType: registry.contentType,
        text: await formatMetrics(await registry.getMetricsAsJSON()),
      }
    },
    /** Returns the values of the named metrics, which costs less than a snapshot of all metrics. */
    read: (names: readonly string[]): Promise<readonly (readonly CounterValue[])[]> =>
      Promise.all(names.map(async (name) => (await registry.getSingleMetric(name)?.get())?.values ?? [])),
    snapshot: (): Promise<MetricsSnapshot> => {
      prepare()
      return registry.getMetricsAsJSON()
    },
  }
}

/** The result of a check of a live exchange. */
export interface ComparedSeen {
  readonly partner: string
  readonly check: 'reply' | 'readBack' | 'answers'
  readonly kind: string
  readonly verdicts: ReadonlyMap<string, number>
  /** The number of differences, by their kinds and paths in the form `<kind> <path>`. */
  readonly differences: ReadonlyMap<string, number>
  readonly delaysMs: readonly number[]
}

const check = ['reply', 'readBack', 'answers'] as const
const skipReasons = ['tooLarge', 'encoding', 'form', 'refused', 'empty', 'superseded', 'nextLink', 'paged', 'unordered', 'noKey', 'silence', 'pace', 'stopped', 'failed'] as const // prettier-ignore

/** Maximum number of values of the label `path`, which names fields of the service. All further paths count as `(other)`. */
const MAX_PATHS = 150

/** Creates the metrics of live comparison. While no check is waiting, offered = compared + dropped + skipped. */
function createCompareMetrics({ counter, timer }: Instruments) {
  const compared = counter('compare_compared_total', 'Checks of sampled exchanges that have a result.', {
    partner,
    check,
  })
  const records = counter('compare_records_total', 'Compared records by verdict.', { partner, check, kind: unlisted, verdict: unlisted }) // prettier-ignore
  const differences = counter('compare_differences_total', 'Fields of compared records that differ.', { partner, check, path: unlisted, kind: unlisted }) // prettier-ignore
  const delays = timer('compare_visible', 'Time from a reply to the read that showed the mark on the other side.', { partner, check }) // prettier-ignore
  const paths = new Set<string>()
  const labelOf = (path: string): string => {
    if (paths.has(path)) return path
    if (paths.size >= MAX_PATHS) return '(other)'
    paths.add(path)
    return path
  }
  return {
    offered: counter('compare_offered_total', 'Checks of sampled exchanges. Each check ends as compared, dropped or skipped.', { partner, check }), // prettier-ignore
    compared: (seen: ComparedSeen): void => {
      compared(seen)
      for (const [verdict, count] of seen.verdicts) records({ ...seen, verdict }, count)
      for (const [name, count] of seen.differences) {
        const at = name.indexOf(' ')
        differences({ ...seen, path: labelOf(name.slice(at + 1)), kind: name.slice(0, at) }, count)
      }
      for (const ms of seen.delaysMs) delays(seen, ms)
    },
    dropped: counter('compare_dropped_total', 'Checks of sampled exchanges that were dropped before they began.', { partner, check, reason: ['full', 'closed', 'failed'] }), // prettier-ignore
    skipped: counter('compare_skipped_total', 'Checks of sampled exchanges that could not be carried out.', { partner, check, reason: skipReasons }), // prettier-ignore
    called: counter('compare_calls_total', 'Calls that comparisons made to V2 and V3.', { partner, side: unlisted, status: unlisted }), // prettier-ignore
  }
}

export type ReloadMetrics = ReturnType<typeof createReloadMetrics>

/** Creates the metrics of the configuration, which was loaded at `nowMs()`. Of all processes of an adapter, only one has these metrics. */
export function createReloadMetrics({ counter, gauge }: Instruments, nowMs: () => number) {
  const results = counter('config_reloads_total', 'Reloads of the configuration by result.', { result: ['reloaded', 'refused'] }) // prettier-ignore
  let [revision, loadedMs, needsRestart] = [1, nowMs(), 0]
  gauge('config_revision', 'Number of configurations that took effect, including the first.', () => revision)
  gauge('config_loaded_timestamp_seconds', 'Time at which the configuration in use was loaded.', () => loadedMs / 1_000) // prettier-ignore
  gauge(
    'config_needs_restart',
    'Number of changed keys that take effect at the next start.',
    () => needsRestart,
  )
  return {
    /** Counts a reload after which `pending` changed keys need a restart. Returns the new revision. */
    reloaded: (pending: number): number => {
      results({ result: 'reloaded' })
      revision += 1
      loadedMs = nowMs()
      needsRestart = pending
      return revision
    },
    refused: (): void => results({ result: 'refused' }),
  }
}

/** The number of series that are formatted in one turn of the event loop. Formatting them takes a few milliseconds. */
const SERIES_PER_TURN = 2_000

/**
 * Formats metrics as `Registry.metrics` does, but in slices. `Registry.metrics` blocks the event loop for a third of a second with 1,000
 * partners.
 */
export async function formatMetrics(
  metrics: Awaited<ReturnType<Registry['getMetricsAsJSON']>>,
): Promise<string> {
  const texts: string[] = []
  let left = SERIES_PER_TURN
  for (const { name, help, type, values } of metrics) {
    const lines = [`# HELP ${name} ${escapeText(help)}`, `# TYPE ${name} ${type}`]
    for (const one of values) {
      lines.push(formatSeries('metricName' in one ? String(one.metricName) : name, one.labels, one.value))
      left -= 1
      if (left > 0) continue
      await nextTurn()
      left = SERIES_PER_TURN
    }
    texts.push(lines.join('\n'))
  }
  return `${texts.join('\n\n')}\n`
}

function formatSeries(name: string, labels: Readonly<Record<string, unknown>>, value: number): string {
  const parts = Object.entries(labels).map(
    ([label, of]) => `${label}="${escapeText(String(of)).replaceAll('"', '\\"')}"`,
  )
  const series = parts.length === 0 ? name : `${name}{${parts.join()}}`
  return `${series} ${Math.abs(value) === Infinity ? `${value < 0 ? '-' : '+'}Inf` : value}`
}

const escapeText = (text: string): string => text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')

export type MetricsSum = ReturnType<typeof createMetricsSum>

/** Adds up the metrics of running workers and of workers that ended unexpectedly, and adds the metrics of reloads. */
export function createMetricsSum(nowMs: () => number) {
  const own = new Registry()
  const alive = new Map<number, MetricsSnapshot>()
  let gone: Promise<MetricsSnapshot> = Promise.resolve([])
  const instruments = createInstruments(own)
  const ended = instruments.counter('worker_ends_total', 'Workers that ended unexpectedly.', {})
  instruments.gauge('workers', 'Running workers.', () => alive.size)
  return {
    reloads: createReloadMetrics(instruments, nowMs),
    started: (worker: number): void => void alive.set(worker, []),
    /** Replaces the values of a worker. Ignores values that arrive after the worker has ended. */
    replace: (worker: number, snapshot: MetricsSnapshot): void => {
      if (alive.has(worker)) alive.set(worker, snapshot)
    },
    /** Removes a worker that ended unexpectedly. Its last counts stay in the sums, so that no total decreases. */
    ended: (worker: number): void => {
      const last = (alive.get(worker) ?? []).filter(isCounted)
      alive.delete(worker)
      ended({})
      gone = gone.then((before) => add([before, last]).getMetricsAsJSON())
    },
    render: async (): Promise<MetricsText> => {
      const [shown, before] = [[...alive.values()], gone]
      const all = add([...shown, await before])
      return { contentType: all.contentType, text: `${await own.metrics()}${await all.metrics()}` }
    },
  }
}

/** Adds up metrics. The `aggregator` of a metric says whether its values are added, or whether all processes have the same value. */
function add(snapshots: MetricsSnapshot[]): Registry {
  return AggregatorRegistry.aggregate(snapshots)
}

/** Returns true for a counter or histogram. Its values stay valid after the process has ended, unlike the value of a gauge. */
function isCounted(metric: object): boolean {
  return 'type' in metric && (metric.type === 'counter' || metric.type === 'histogram')
}
