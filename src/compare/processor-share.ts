import { readlinkSync } from 'node:fs'
import { setPriority } from 'node:os'

import { type Clock, waitFor } from '../clock.ts'

/** Unused time is kept up to here. */
const MOST_SAVED_MS = 50
/** How often work that waits asks whether there is time; over less, the clocks of processors say too little. */
const ASK_MS = 10
/**
 * Of one processor. The work, and the collections of garbage after it, take caches and cores from the threads that serve clients: the share is
 * the larger one while those are idle, and the smaller one while they use a whole processor.
 */
const [LARGEST, LEAST] = [1 / 10, 1 / 50]

export type ProcessorShare = ReturnType<typeof createProcessorShare>

/** Creates the account of the processor time that the thread for background work may use: time adds to it, work takes from it, and waits while nothing is left. `usedMs`: processor time since the start, of this thread and of all others of the process. */
export function createProcessorShare(
  clock: Clock,
  usedMs: () => { readonly own: number; readonly others: number },
  stopped: AbortSignal,
) {
  let savedMs = MOST_SAVED_MS
  let seen = { atMs: clock.nowMs(), ...usedMs() }
  let last: Promise<unknown> = Promise.resolve()
  const save = (): void => {
    const now = { atMs: clock.nowMs(), ...usedMs() }
    const elapsedMs = now.atMs - seen.atMs
    const idleMs = Math.max(0, elapsedMs - (now.others - seen.others))
    const earnedMs = elapsedMs * LEAST + idleMs * (LARGEST - LEAST)
    savedMs = Math.min(MOST_SAVED_MS, savedMs + earnedMs - (now.own - seen.own))
    seen = now
  }
  const begin = async (): Promise<void> => {
    save()
    while (savedMs <= 0 && !stopped.aborted) {
      await waitFor(ASK_MS, clock, stopped)
      save()
    }
    await new Promise<void>((resolve) => setImmediate(resolve))
  }
  return {
    /** Resolves once time is left; at once after the end of the adapter. */
    begin,
    /** Runs work when all that was given before has ended and time is left. */
    inTurn: <Result>(work: () => Promise<Result>): Promise<Result> => {
      const working = last.then(begin).then(work)
      last = working.catch(() => undefined)
      return working
    },
  }
}

/**
 * Sets the nice value of the calling thread: where another thread wants the same processor, that one has it. Linux counts threads as
 * processes; elsewhere nothing changes.
 */
export function takePriority(nice: number): void {
  if (process.platform !== 'linux') return
  try {
    const thread = Number(readlinkSync('/proc/thread-self').split('/').at(-1))
    setPriority(thread, nice)
  } catch {
    // A container without /proc, or a profile that forbids it: the threads share the processor evenly.
  }
}

/** Processor time of this thread and of the others of the process, ms. */
export function usedMs(): { readonly own: number; readonly others: number } {
  const [own, all] = [process.threadCpuUsage(), process.cpuUsage()].map(
    ({ user, system }) => (user + system) / 1_000,
  )
  return { own: own ?? 0, others: (all ?? 0) - (own ?? 0) }
}
