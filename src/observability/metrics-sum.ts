import { AggregatorRegistry, Registry } from 'prom-client'

import { createInstruments } from './instruments.ts'
import { createReloadMetrics, type MetricsSnapshot, type MetricsText } from './metrics.ts'

/** The metrics of several processes as those of one adapter. */
export type MetricsSum = ReturnType<typeof createMetricsSum>

/** Creates the sum, with metrics of its own: the running workers, those that ended unexpectedly, and reloads. */
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
    /** Replaces the values of a process with its latest ones. */
    shown: (worker: number, snapshot: MetricsSnapshot): void => {
      if (alive.has(worker)) alive.set(worker, snapshot)
    },
    /** Removes a process. Its last counts are kept, so that no total falls. */
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

/** Each metric names its aggregation: a sum, except for values that are the same in each process. */
function add(snapshots: MetricsSnapshot[]): Registry {
  return AggregatorRegistry.aggregate(snapshots)
}

/** Counts outlive their process; gauges do not. */
function isCounted(metric: object): boolean {
  return 'type' in metric && (metric.type === 'counter' || metric.type === 'histogram')
}
