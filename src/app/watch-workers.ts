import { createEvents } from '../observability/events.ts'
import type { Logger } from '../observability/logger.ts'
import { createMetricsSum } from '../observability/metrics.ts'
import { createReloadReport, type ReloadReport } from './reload.ts'

export type { MetricsSnapshot, MetricsText } from '../observability/metrics.ts'

export type WorkerWatch = ReturnType<typeof createWorkerWatch>

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
    shown: sum.replace,
    /** Reports the end of a worker. If `restartMs` is set, another worker replaces the ended worker after this time. */
    ended: (end: Parameters<typeof events.workerEnded>[0]): void => {
      sum.ended(end.worker)
      events.workerEnded(end)
    },
    render: sum.render,
  }
}
