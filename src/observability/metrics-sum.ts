import { AggregatorRegistry, Gauge, Registry } from 'prom-client'

import { createInstruments } from './instruments.ts'
import type { MetricsSnapshot, MetricsText } from './metrics.ts'
import { createReloadMetrics, type ReloadMetrics } from './reload-metrics.ts'

/** The metrics of several processes as those of one adapter. */
export interface MetricsSum {
  started(worker: number): void
  /** What a process shows now, instead of what it showed before. */
  shown(worker: number, snapshot: MetricsSnapshot): void
  /** A process is gone. What it had counted when it was last seen stays, so that no total falls. */
  ended(worker: number): void
  readonly reloads: ReloadMetrics
  render(): Promise<MetricsText>
}

/** Creates the sum, with metrics of its own: how many processes run, how many ended before their time, and reloads. */
export function createMetricsSum(nowMs: () => number): MetricsSum {
  const own = new Registry()
  const alive = new Map<number, MetricsSnapshot>()
  let gone: Promise<MetricsSnapshot> = Promise.resolve([])
  const ends = createInstruments(own).counter('worker_ends_total', 'Workers that ended before their time.', []) // prettier-ignore
  const workers: Gauge = new Gauge({
    name: 'markbridge_workers',
    help: 'Workers that run.',
    registers: [own],
    collect: () => {
      workers.set(alive.size)
    },
  })
  return {
    reloads: createReloadMetrics(own, nowMs),
    started: (worker) => alive.set(worker, []),
    shown: (worker, snapshot) => {
      if (alive.has(worker)) alive.set(worker, snapshot)
    },
    ended: (worker) => {
      const last = (alive.get(worker) ?? []).filter(isCounted)
      alive.delete(worker)
      ends.inc()
      gone = gone.then((before) => add([before, last]).getMetricsAsJSON())
    },
    render: async () => {
      const [shown, before] = [[...alive.values()], gone]
      const all = add([...shown, await before])
      return { contentType: all.contentType, text: `${await own.metrics()}${await all.metrics()}` }
    },
  }
}

/** Each metric knows how it is added up: most are sums, those that are the same everywhere are not. */
function add(snapshots: MetricsSnapshot[]): Registry {
  return AggregatorRegistry.aggregate(snapshots)
}

/** Counts outlive their process; a gauge is what is true of it now. */
function isCounted(metric: object): boolean {
  return 'type' in metric && (metric.type === 'counter' || metric.type === 'histogram')
}
