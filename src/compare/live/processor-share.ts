import type { Clock } from '../../clock.ts'
import { waitFor } from '../../clock/wait-for.ts'

/** The processor time that comparisons may use. */
export interface ProcessorShare {
  /** Resolves once time is left, in a turn of its own; at once after the end of the adapter. */
  begin(): Promise<void>
}

export interface ProcessorShareOptions {
  readonly clock: Clock
  /** Processor time since the start, ms: of the thread that compares, and of all other threads of the process. */
  readonly usedMs: () => { readonly own: number; readonly others: number }
  /** Runs work in a turn of its own. */
  readonly later: (act: () => void) => void
  readonly stopped: AbortSignal
}

/**
 * Of one processor. Comparing, and the collections of garbage after it, take caches and cores from the threads that serve clients: the share
 * is the larger one while those are idle, and the smaller one while they use a whole processor.
 */
const [LARGEST, LEAST] = [1 / 10, 1 / 50]
/** Unused time is kept up to here. */
const MOST_SAVED_MS = 50
/** How often work that waits asks whether there is time. */
const ASK_MS = 10

/** Creates the account of one thread: time adds to it, work takes from it, and waits while nothing is left. */
export function createProcessorShare(options: ProcessorShareOptions): ProcessorShare {
  const { clock, usedMs, later, stopped } = options
  let savedMs = MOST_SAVED_MS
  let [seenMs, seen] = [clock.nowMs(), usedMs()]
  const save = (): void => {
    const [nowMs, used] = [clock.nowMs(), usedMs()]
    const elapsedMs = nowMs - seenMs
    savedMs -= used.own - seen.own
    seen = { ...seen, own: used.own }
    // Over less, the clocks of processors say too little.
    if (elapsedMs < ASK_MS) return
    const idleMs = Math.max(0, elapsedMs - (used.others - seen.others))
    savedMs = Math.min(MOST_SAVED_MS, savedMs + elapsedMs * LEAST + idleMs * (LARGEST - LEAST))
    seenMs = nowMs
    seen = used
  }
  return {
    begin: async () => {
      save()
      while (savedMs <= 0 && !stopped.aborted) {
        await waitFor(ASK_MS, clock, stopped)
        save()
      }
      await new Promise<void>(later)
    },
  }
}
