import { type Clock, waitFor } from '../clock.ts'

/** The processor time that background work may use. */
export interface ProcessorShare {
  /** Resolves once time is left, in a turn of its own; at once after the end of the adapter. */
  begin(): Promise<void>
  /** Takes time that work has used and that `earnMs` does not know of. */
  spent(ms: number): void
}

export interface ProcessorShareOptions {
  readonly clock: Clock
  /** The time that comes to the account for the time since the last call; below 0 where work has used more. */
  readonly earnMs: (elapsedMs: number) => number
  /** Runs work in a turn of its own. */
  readonly later: (act: () => void) => void
  readonly stopped: AbortSignal
}

/** Unused time is kept up to here. */
const MOST_SAVED_MS = 50
/** How often work that waits asks whether there is time; over less, the clocks of processors say too little. */
const ASK_MS = 10

/** Creates an account: time adds to it, work takes from it, and waits while nothing is left. */
export function createProcessorShare(options: ProcessorShareOptions): ProcessorShare {
  const { clock, earnMs, later, stopped } = options
  let savedMs = MOST_SAVED_MS
  let seenMs = clock.nowMs()
  const save = (): void => {
    const elapsedMs = clock.nowMs() - seenMs
    seenMs += elapsedMs
    savedMs = Math.min(MOST_SAVED_MS, savedMs + earnMs(elapsedMs))
  }
  return {
    spent: (ms) => {
      savedMs -= ms
    },
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

/**
 * Of one processor, for a thread of its own. Its work, and the collections of garbage after it, take caches and cores from the threads that serve
 * clients: the share is the larger one while those are idle, and the smaller one while they use a whole processor.
 */
const [LARGEST, LEAST] = [1 / 10, 1 / 50]

/** What comes to the account of a thread. `usedMs`: processor time since the start, of this thread and of all others of the process. */
export function threadEarnings(
  usedMs: () => { readonly own: number; readonly others: number },
): ProcessorShareOptions['earnMs'] {
  let seen = usedMs()
  return (elapsedMs) => {
    const used = usedMs()
    const idleMs = Math.max(0, elapsedMs - (used.others - seen.others))
    const ownMs = used.own - seen.own
    seen = used
    return elapsedMs * LEAST + idleMs * (LARGEST - LEAST) - ownMs
  }
}
