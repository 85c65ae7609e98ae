import type { ReloadReport } from './create-reload.ts'
import { createReloadReport } from './report-reload.ts'
import { createEvents } from '../observability/events.ts'
import { createLogger } from '../observability/logger.ts'
import type { MetricsSnapshot, MetricsText } from '../observability/metrics.ts'
import { createMetricsSum } from '../observability/metrics-sum.ts'

export type { MetricsSnapshot, MetricsText } from '../observability/metrics.ts'

/** How a process ended: by itself with a status, or by a signal. */
export interface WorkerEnd {
  readonly status: number | null
  readonly signal: string | null
}

/** What is seen of the workers of one adapter, in the log and in the metrics. */
export interface WorkerWatch {
  started(worker: number, pid: number): void
  /** What the worker shows as its own metrics. */
  shown(worker: number, snapshot: MetricsSnapshot): void
  /** Another takes its place after `restartMs`; undefined: none does. */
  ended(worker: number, end: WorkerEnd, restartMs: number | undefined): void
  readonly reloads: ReloadReport
  /** The metrics of all of them as one page. */
  render(): Promise<MetricsText>
}

/** Creates the watch of the process that starts the workers. */
export function createWorkerWatch(logLevel: string): WorkerWatch {
  const events = createEvents(createLogger(logLevel))
  const sum = createMetricsSum(Date.now)
  return {
    reloads: createReloadReport(events, sum.reloads),
    started: (worker, pid) => {
      sum.started(worker)
      events.workerStarted({ worker, pid })
    },
    shown: (worker, snapshot) => sum.shown(worker, snapshot),
    ended: (worker, { status, signal }, restartMs) => {
      sum.ended(worker)
      events.workerEnded({ worker, status, signal, restartMs: restartMs ?? null })
    },
    render: () => sum.render(),
  }
}
