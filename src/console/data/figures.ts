import type { MetricsSnapshot } from '../../observability/metrics.ts'
import type { Counted, readCounts } from './counts.ts'
import type { Figures, Percentiles } from './port.ts'

/** The metrics that are stored, with the labels by which their values are added up. `kind` selects the values with this label. */
const storedMetrics = [
  { name: 'calls', metric: 'markbridge_v3_call_duration_seconds_count', labels: ['kind', 'status'] },
  { name: 'callMs', metric: 'markbridge_v3_call_duration_seconds_bucket', labels: ['le'] },
  { name: 'batchMs', metric: 'markbridge_request_duration_seconds_bucket', labels: ['le'], kind: 'batch' },
  { name: 'queueMs', metric: 'markbridge_queue_wait_seconds_bucket', labels: ['le'] },
  { name: 'refused', metric: 'markbridge_queue_refused_total', labels: [] },
  { name: 'denied', metric: 'markbridge_credentials_denied_total', labels: ['partner'] },
  { name: 'ownDenied', metric: 'markbridge_own_credentials_denied_total', labels: ['partner'] },
] as const

interface Value {
  readonly value: number
  readonly labels: Readonly<Record<string, string | number>>
  readonly metricName?: string
}

/** Creates a function that returns the growth of the metrics of a process since the previous call. */
export function createFigureDeltas() {
  let last = new Map<string, number>()
  return (snapshot: MetricsSnapshot): readonly Omit<Counted, 'atMs'>[] => {
    const now = readFigures(snapshot)
    const grown = [...now].map(([name, count]) => ({ name, count: count - (last.get(name) ?? 0) }))
    last = now
    return grown.filter(({ count }) => count > 0)
  }
}

function readFigures(snapshot: MetricsSnapshot): Map<string, number> {
  const figures = new Map<string, number>()
  for (const metric of snapshot) {
    if (!('name' in metric) || !('values' in metric)) continue
    for (const { value, labels, metricName = metric.name } of metric.values as readonly Value[]) {
      const own = storedMetrics.find((one) => one.metric === metricName)
      if (own === undefined || ('kind' in own && own.kind !== labels['kind'])) continue
      const name = [own.name, ...own.labels.map((label) => labels[label])].join(' ')
      figures.set(name, (figures.get(name) ?? 0) + value)
    }
  }
  return figures
}

/** Converts counts to figures by interval. Intervals without counts are left out. */
export function toFigures(counted: Awaited<ReturnType<typeof readCounts>>): readonly Figures[] {
  const { fromMs, stepMs, rows } = counted
  const own = rows.filter(({ words: [name] }) => name !== 'marks')
  return [...Map.groupBy(own, ({ index }) => index)].map(([index, counts]) => {
    const named = (wanted: string) => counts.filter(({ words: [name] }) => name === wanted)
    const percentiles = (name: (typeof storedMetrics)[number]['name']): Percentiles =>
      toPercentiles(named(name).map(({ words, count }) => [words[1] === '+Inf' ? Infinity : Number(words[1]), count])) // prettier-ignore
    return {
      atMs: fromMs + index * stepMs,
      calls: named('calls').map(({ words: [, kind = '', status = ''], count }) => ({ kind, status, count })),
      refusedCalls: named('refused').reduce((sum, { count }) => sum + count, 0),
      callMs: percentiles('callMs'),
      batchMs: percentiles('batchMs'),
      queueMs: percentiles('queueMs'),
    }
  })
}

/** Computes percentiles from a histogram. Each bucket has an upper bound in seconds and the number of values up to this bound. */
function toPercentiles(buckets: readonly (readonly [bound: number, count: number])[]): Percentiles {
  const sorted = [...buckets].sort(([one], [other]) => one - other)
  const count = sorted.at(-1)?.[1] ?? 0
  const longest = sorted.at(-2)?.[0] ?? 0
  const at = (share: number): number | undefined => {
    const bound = sorted.find(([, below]) => below >= count * share)?.[0]
    return count === 0 || bound === undefined ? undefined : Math.min(bound, longest) * 1_000
  }
  return { count, p50: at(0.5), p95: at(0.95), p99: at(0.99) }
}
