import { createEvents } from '../observability/events.ts'
import type { Logger } from '../observability/logger.ts'
import { createMetricsSum } from '../observability/metrics.ts'
import { createReloadReport, type ReloadReport } from './reload.ts'

export type { MetricsSnapshot, MetricsText } from '../observability/metrics.ts'

/** Reports the workers of one adapter in the log and in the metrics. */
export type WorkerWatch = ReturnType<typeof createWorkerWatch>

/** Creates the reports of the process that starts the workers. */
export function createWorkerWatch(logger: Logger) {
  const events = createEvents(logger)
  const sum = createMetricsSum(Date.now)
  const reloads: ReloadReport = createReloadReport(events, sum.reloads)
  return {
    reloads,
    started: (worker: number, pid: number): void => {
      sum.started(worker)
      events.workerStarted({ worker, pid })
    },
    /** Takes the latest metrics of a worker. */
    shown: sum.replace,
    /** A worker ended; another replaces it after `restartMs`, or none does. */
    ended: (end: Parameters<typeof events.workerEnded>[0]): void => {
      sum.ended(end.worker)
      events.workerEnded(end)
    },
    /** The metrics of all workers as one page. */
    render: sum.render,
  }
}
