import type { ReloadReport } from './reload.ts'
import { createReloadReport } from './reload.ts'
import { createEvents } from '../observability/events.ts'
import { createLogger } from '../observability/logger.ts'
import type { MetricsSnapshot, MetricsText } from '../observability/metrics.ts'
import { createMetricsSum } from '../observability/metrics-sum.ts'

export type { MetricsSnapshot, MetricsText } from '../observability/metrics.ts'

/** The end of a process: its exit status, or a signal. */
export interface WorkerEnd {
  readonly status: number | null
  readonly signal: string | null
}

/** Reports the workers of one adapter in the log and in the metrics. */
export interface WorkerWatch {
  started(worker: number, pid: number): void
  /** Takes the latest metrics of a worker. */
  shown(worker: number, snapshot: MetricsSnapshot): void
  /** Another worker replaces it after `restartMs`; undefined: none does. */
  ended(worker: number, end: WorkerEnd, restartMs: number | undefined): void
  readonly reloads: ReloadReport
  /** The metrics of all workers as one page. */
  render(): Promise<MetricsText>
}

/** Creates the reports of the process that starts the workers. */
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
