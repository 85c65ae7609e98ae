import { type Clock, createPeriodicTask } from '../../clock.ts'
import { createFigureDeltas } from '../../console/data/figures.ts'
import { createStepQueue, observeJournal } from '../../console/data/steps.ts'
import type { Journal } from '../../journal/index.ts'
import type { Metrics } from '../../observability/metrics.ts'
import { type ConsoleDataOptions, openConsoleData, type OpenedConsoleData } from './open-console-data.ts'

const STEPS_EVERY_MS = 1_000
const FIGURES_EVERY_MS = 60_000
const STOP_MS = 5_000

interface InstanceOptions extends ConsoleDataOptions {
  readonly metrics: Pick<Metrics, 'snapshot'>
  /** Milliseconds since the epoch. */
  readonly nowMs: () => number
}

/** Opens the data of the console in an instance, which adds the steps of its journal's calls and the figures of each minute. */
export function openInstanceConsole({ metrics, nowMs, ...options }: InstanceOptions) {
  const data = openConsoleData(options)
  return data && observeInstance(data, metrics, options.clock, nowMs)
}

function observeInstance(
  data: OpenedConsoleData,
  metrics: Pick<Metrics, 'snapshot'>,
  clock: Clock,
  nowMs: () => number,
) {
  const queue = createStepQueue(nowMs)
  const deltas = createFigureDeltas()
  const stepping = createPeriodicTask({
    clock,
    everyMs: STEPS_EVERY_MS,
    stopMs: STOP_MS,
    act: async () => {
      const { steps, lost } = queue.take()
      if (steps.length === 0 && lost === 0) return
      await data.keepSteps(steps, lost).catch(() => queue.lose(steps.length + lost))
    },
  })
  const figuring = createPeriodicTask({
    clock,
    everyMs: FIGURES_EVERY_MS,
    stopMs: STOP_MS,
    // What cannot be kept is missing on the page, and still in the metrics.
    act: async () => {
      const counts = deltas(await metrics.snapshot())
      const middleMs = nowMs() - FIGURES_EVERY_MS / 2
      if (counts.length > 0) await data.keepFigures(counts, middleMs).catch(() => undefined)
    },
  })
  return {
    data,
    /** The journal with an observer that notes exceptional steps. */
    observe: (journal: Journal): Journal => observeJournal(journal, queue),
    start: (): void => {
      stepping.start()
      figuring.start()
    },
    /** Keeps what is left, and ends; to be called before the journal is closed. */
    stop: async (): Promise<void> => {
      await Promise.all([stepping.stop(), figuring.stop()])
      await data.close()
    },
  }
}
