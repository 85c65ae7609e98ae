import type { Metrics } from '../../observability/metrics.ts'
import type { Counted } from './counts.ts'

/** The counters whose growth is stored. All values of a counter that have the same `label` are added up. */
const stored = [
  { name: 'v3', metric: 'markbridge_v3_call_duration_seconds', label: 'status' },
  { name: 'v2', metric: 'markbridge_v2_call_duration_seconds', label: 'status' },
  { name: 'accepted', metric: 'markbridge_credentials_accepted_total', label: 'partner' },
  { name: 'denied', metric: 'markbridge_credentials_denied_total', label: 'partner' },
  { name: 'noToken', metric: 'markbridge_token_failures_total', label: 'partner' },
  { name: 'ownDenied', metric: 'markbridge_own_credentials_denied_total', label: 'partner' },
] as const

const names = stored.map(({ metric }) => metric)

/**
 * Creates a function that returns the growth of the counters of a process since the previous call. The count `reports` grows with every
 * call, so that an interval without calls differs from an interval without reports.
 */
export function createFigureDeltas(metrics: Pick<Metrics, 'read'>) {
  let last = new Map<string, number>()
  return async (): Promise<readonly Omit<Counted, 'atMs'>[]> => {
    const now = new Map<string, number>()
    for (const [at, values] of (await metrics.read(names)).entries())
      for (const { value, labels, metricName = '_count' } of values) {
        const own = stored[at]
        if (own === undefined || !metricName.endsWith('_count')) continue
        const name = `${own.name} ${labels[own.label]}`
        now.set(name, (now.get(name) ?? 0) + value)
      }
    const grown = [...now].map(([name, count]) => ({ name, count: count - (last.get(name) ?? 0) }))
    last = now
    return [{ name: 'reports', count: 1 }, ...grown.filter(({ count }) => count > 0)]
  }
}
