import type { MetricsSnapshot } from '../../observability/metrics.ts'
import type { readCounts } from './counts.ts'
import type { Figures, Percentiles } from './port.ts'

/** What is taken of the metrics, by the name of a histogram, with the labels that it must have. */
const times = {
  callMs: { metric: 'markbridge_v3_call_duration_seconds', of: {} },
  batchMs: { metric: 'markbridge_request_duration_seconds', of: { kind: 'batch' } },
  queueMs: { metric: 'markbridge_queue_wait_seconds', of: {} },
} as const

type TimeName = keyof typeof times
const timeNames = Object.keys(times) as readonly TimeName[]

/** A value of a metric, as prom-client gives it. */
interface Value {
  readonly value: number
  readonly labels: Readonly<Record<string, string | number>>
  readonly metricName?: string
}

/** Creates what makes counts of the metrics of a process: how much each has grown since the call before. */
export function createFigureDeltas() {
  let last = new Map<string, number>()
  return (snapshot: MetricsSnapshot): readonly { readonly name: string; readonly count: number }[] => {
    const now = readFigures(snapshot)
    const grown = [...now].map(([name, count]) => ({ name, count: count - (last.get(name) ?? 0) }))
    last = now
    return grown.filter(({ count }) => count > 0)
  }
}

function readFigures(snapshot: MetricsSnapshot): Map<string, number> {
  const figures = new Map<string, number>()
  const add = (name: string, count: number): void => void figures.set(name, (figures.get(name) ?? 0) + count)
  const valuesOf = (metric: string): readonly Value[] =>
    snapshot.flatMap((one) => ('name' in one && one.name === metric && 'values' in one ? (one.values as readonly Value[]) : [])) // prettier-ignore
  for (const name of timeNames) {
    const { metric, of } = times[name]
    for (const { value, labels, metricName } of valuesOf(metric)) {
      if (metricName !== `${metric}_bucket` || Object.entries(of).some(([label, own]) => labels[label] !== own)) continue // prettier-ignore
      add(`${name} ${labels.le}`, value)
    }
  }
  for (const { value, labels, metricName } of valuesOf(times.callMs.metric))
    if (metricName?.endsWith('_count') === true) add(`calls ${labels.kind} ${labels.status}`, value)
  for (const { value } of valuesOf('markbridge_queue_refused_total')) add('refused', value)
  return figures
}

/** The figures of each point of a range that has any. */
export function toFigures({
  fromMs,
  stepMs,
  rows,
}: Awaited<ReturnType<typeof readCounts>>): readonly Figures[] {
  const own = rows.filter(({ words: [name] }) => name !== 'marks')
  return [...Map.groupBy(own, ({ index }) => index)].map(([index, counts]) => {
    const named = (wanted: string) => counts.filter(({ words: [name] }) => name === wanted)
    const percentiles = (name: TimeName): Percentiles =>
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

/** Of a histogram: for each upper bound in seconds how many were not longer. */
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
