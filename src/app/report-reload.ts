import type { Events } from '../observability/events.ts'
import type { ReloadMetrics } from '../observability/reload-metrics.ts'
import type { ReloadReport } from './create-reload.ts'

/** A file may have very many faults: the log has the first of them and their number. */
const MAX_FAULTS = 100

/** Creates the report of reloads in log and metrics. */
export function createReloadReport(
  events: Pick<Events, 'configReloaded' | 'configRefused'>,
  metrics: ReloadMetrics,
): ReloadReport {
  return {
    reloaded: (changes) =>
      events.configReloaded({ revision: metrics.reloaded(changes.needsRestart.length), ...changes }),
    refused: (faults) => {
      metrics.refused()
      events.configRefused({ count: faults.length, faults: faults.slice(0, MAX_FAULTS) })
    },
  }
}
