import { collectDefaultMetrics, Gauge, Registry } from 'prom-client'

import { createCompareMetrics } from './compare-metrics.ts'
import { createInstruments, statusClass } from './instruments.ts'

/** A call to an upstream; `status` is undefined where no reply head was received. */
interface CallSeen<Kind extends string> {
  readonly kind: Kind
  readonly status: number | undefined
  readonly durationMs: number
}

/** A write that waits for its stage, or was refused for it. */
interface StageWaitSeen {
  readonly partner: string
  readonly reason: 'changing' | 'stale' | 'asking' | 'overloaded'
}

/** A gauge that is read when the metrics are rendered. */
interface GaugeOptions<Label extends string> {
  /** Without `markbridge_`. */
  readonly name: string
  readonly help: string
  readonly labels?: readonly Label[]
  /** True for a value that is the same in each process of an adapter, so that readings are not added up. */
  readonly shared?: boolean
}

/** One number, or one for each combination of label values, which must be few and known. Empty: the value is not available. */
type GaugeReading<Label extends string> =
  number | readonly { readonly labels: Readonly<Record<Label, string>>; readonly value: number }[]

/** A page of metrics for Prometheus. */
export interface MetricsText {
  readonly contentType: string
  readonly text: string
}

/** Metrics as JSON data, in the form that workers send to the process that adds them up. */
export type MetricsSnapshot = readonly object[]

/**
 * The metrics of one adapter, in a registry of its own. Labels are the partner's id and words from fixed lists: no value of a
 * learner or a mark, no key, no path (product contract 8).
 */
export type Metrics = ReturnType<typeof createMetrics>

const sides = ['v2', 'v3']
const stageWaitReasons = ['changing', 'stale', 'asking']
/** Gauges of the process whose names end as those of counters do; what they count is also in `nodejs_active_resources`. */
const misnamed = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
]

/** Creates the metrics; docs/metrics.md says what each means. `partners`: the ids of those whose counters are shown before they count. */
export function createMetrics(partners: () => readonly string[] = () => []) {
  const registry = new Registry()
  const instruments = createInstruments(registry)
  const { counter, histogram } = instruments
  const calls = histogram('v3_call_duration', 'From a call to V3 to the head of its reply.', ['kind', 'status']) // prettier-ignore
  const relayed = histogram('v2_call_duration', 'From a call to V2 to the head of its reply.', ['kind', 'status']) // prettier-ignore
  const waits = histogram('queue_wait', 'Time in the queue, of calls that were sent.', ['priority'])
  const turnedAway = counter('queue_refused_total', 'Calls that left the queue without being sent.', ['priority', 'reason'], { priority: ['write', 'read', 'comparison'], reason: ['full', 'deadline', 'gone'] }) // prettier-ignore
  const visible = histogram('read_back_visible', 'From the loss of a reply to the read-back that showed the mark.', []) // prettier-ignore
  const refusals = counter('shares_refused_total', 'Requests that were refused because the share of their client was used up.', ['resource', 'reason'], { resource: ['pass_through', 'read', 'relay', 'bytes'], reason: ['share', 'wait', 'gone'] }) // prettier-ignore
  const guardTrials = counter('stage_guard_trials_total', 'Writes that guards have counted.', ['partner', 'side'], { side: sides }) // prettier-ignore
  const guardBad = counter('stage_guard_bad_trials_total', 'Counted writes with a bad outcome.', ['partner', 'side', 'kind'], { side: sides, kind: ['unknown', 'serverError', 'refused', 'slow'] }) // prettier-ignore
  const evidence = counter('compare_evidence_total', 'Compared requests that are kept as evidence, or lost.', ['partner', 'fate'], { fate: ['kept', 'lost'] }) // prettier-ignore
  const recorded = counter('record_exchanges_total', 'Exchanges that were to be recorded, by what became of them.', ['partner', 'fate'], { fate: ['recorded', 'dropped', 'tooLarge', 'unfit', 'incomplete', 'stopped'] }) // prettier-ignore
  const stageWaits = counter('stage_held_total', 'Writes that waited for their stage.', ['partner', 'reason'], { reason: stageWaitReasons }) // prettier-ignore
  const stageRefusals = counter('stage_refused_total', 'Requests that were refused for their stage.', ['partner', 'reason'], { reason: [...stageWaitReasons, 'overloaded'] }) // prettier-ignore
  let observesProcess = false
  const prepare = (): void => {
    partners().forEach(instruments.begin)
    if (observesProcess) return
    collectDefaultMetrics({ register: registry })
    for (const name of misnamed) registry.removeSingleMetric(name)
    observesProcess = true
  }
  return {
    /** Those of its registry, for the counters of events. */
    instruments,
    /** Counts a call to V3. */
    called: ({ kind, status, durationMs }: CallSeen<'write' | 'batch' | 'read' | 'passThrough'>): void => {
      const labels = { kind: kind === 'passThrough' ? 'pass_through' : kind, status: statusLabel(status) }
      calls.observe(labels, durationMs / 1_000)
    },
    /** Counts a call to V2. */
    relayed: ({ kind, status, durationMs }: CallSeen<'read' | 'write'>): void =>
      relayed.observe({ kind, status: statusLabel(status) }, durationMs / 1_000),
    /** Counts the wait of a call for the rate limit; `refused` is undefined for a call that was sent. */
    queued: (wait: {
      readonly priority: 'write' | 'read' | 'comparison'
      readonly waitedMs: number
      readonly refused: 'full' | 'deadline' | 'gone' | undefined
    }): void => {
      const { priority, waitedMs, refused } = wait
      if (refused === undefined) waits.observe({ priority }, waitedMs / 1_000)
      else turnedAway.inc({ priority, reason: refused })
    },
    /** Records how long after the loss of a reply a read-back showed the mark, ms. */
    visible: (afterMs: number): void => visible.observe(afterMs / 1_000),
    /** Counts a request that was refused because its client's share, or the time to wait for it, was used up. */
    shareRefused: (refusal: {
      readonly resource: 'pass_through' | 'read' | 'relay' | 'bytes'
      readonly reason: 'share' | 'wait' | 'gone'
    }): void => refusals.inc(refusal),
    /** Counts a write for the guards of a partner; `outcome`: `good`, or what was bad about it. */
    guardCounted: (trial: {
      readonly partner: string
      readonly side: 'v2' | 'v3'
      readonly outcome: string
    }): void => {
      const { partner, side, outcome } = trial
      guardTrials.inc({ partner, side })
      if (outcome !== 'good') guardBad.inc({ partner, side, kind: outcome })
    },
    /** Counts an exchange that was to be recorded, by what became of it. */
    record: (partner: string, fate: string): void => recorded.inc({ partner, fate }),
    /** Counts compared requests whose result is kept in the journal as evidence, or is lost. */
    evidenceKept: (partner: string, requests: number, isKept: boolean): void =>
      evidence.inc({ partner, fate: isKept ? 'kept' : 'lost' }, requests),
    stageHeld: ({ partner, reason }: StageWaitSeen): void => stageWaits.inc({ partner, reason }),
    stageRefused: ({ partner, reason }: StageWaitSeen): void => stageRefusals.inc({ partner, reason }),
    /** Of live comparisons. */
    compare: createCompareMetrics(instruments),
    /** Adds a gauge; a reading that fails counts as none. */
    addGauge: <Label extends string = never>(
      options: GaugeOptions<Label>,
      read: () => GaugeReading<Label> | Promise<GaugeReading<Label>>,
    ): void => addGauge(registry, options, read),
    /** Adds the metrics of reloads; only one process of an adapter does. */
    addReloads: (nowMs: () => number): ReloadMetrics => createReloadMetrics(registry, nowMs),
    /** The Prometheus text. The first call also starts the observation of the process. */
    render: async (): Promise<MetricsText> => {
      prepare()
      return { contentType: registry.contentType, text: await registry.metrics() }
    },
    /** The same as data. */
    snapshot: (): Promise<MetricsSnapshot> => {
      prepare()
      return registry.getMetricsAsJSON()
    },
  }
}

function statusLabel(status: number | undefined): string {
  return status === undefined ? 'none' : statusClass(status)
}

function addGauge<Label extends string>(
  registry: Registry,
  { name, help, labels = [], shared = false }: GaugeOptions<Label>,
  read: () => GaugeReading<Label> | Promise<GaugeReading<Label>>,
): void {
  const gauge = new Gauge<Label>({
    name: `markbridge_${name}`,
    help,
    labelNames: labels,
    registers: [registry],
    aggregator: shared ? 'first' : 'sum',
    collect: async () => {
      const reading = await Promise.resolve()
        .then(read)
        .catch(() => [])
      // Label values that are no longer reported must disappear.
      gauge.reset()
      if (typeof reading === 'number') gauge.set(reading)
      else for (const sample of reading) gauge.set(sample.labels, sample.value)
    },
  })
}

/** The metrics of the configuration in use. */
export type ReloadMetrics = ReturnType<typeof createReloadMetrics>

/** Creates the metrics of an adapter, whose configuration was loaded at `nowMs`. They belong to one process of it alone. */
export function createReloadMetrics(registry: Registry, nowMs: () => number) {
  const registers = [registry]
  const results = createInstruments(registry).counter('config_reloads_total', 'Reloads of the configuration.', ['result']) // prettier-ignore
  for (const result of ['reloaded', 'refused']) results.inc({ result }, 0)
  const gauge = (name: string, help: string, value: number): Gauge => {
    const made = new Gauge({ name: `markbridge_config_${name}`, help, registers })
    made.set(value)
    return made
  }
  let revision = 1
  const revisions = gauge('revision', 'Configurations that took effect, with the first.', revision)
  const loaded = gauge('loaded_timestamp_seconds', 'When the configuration in use was loaded.', nowMs() / 1_000) // prettier-ignore
  const needsRestart = gauge('needs_restart', 'Keys that take effect with the next start.', 0)
  return {
    /** Another configuration is in use; `pending` keys of it need a restart. Returns its revision. */
    reloaded: (pending: number): number => {
      results.inc({ result: 'reloaded' })
      revision += 1
      revisions.set(revision)
      loaded.set(nowMs() / 1_000)
      needsRestart.set(pending)
      return revision
    },
    refused: (): void => results.inc({ result: 'refused' }),
  }
}
