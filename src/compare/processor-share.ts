import { readlinkSync } from 'node:fs'
import { setPriority } from 'node:os'

import { type Clock, waitFor } from '../clock.ts'

/** The maximum unused processor time, in milliseconds, that carries over to later work. */
const MOST_SAVED_MS = 50
/** The interval at which waiting work checks the budget. The processor clocks are too imprecise for a shorter interval. */
const CHECK_INTERVAL_MS = 10
/**
 * The fractions of one processor that background work may use: the largest while the threads that serve clients are idle, and the smallest
 * while they use a whole processor. Background work competes with these threads for caches and cores.
 */
const [LARGEST, SMALLEST] = [1 / 10, 1 / 50]

export type ProcessorShare = ReturnType<typeof createProcessorShare>

/**
 * Creates the processor time budget of the background thread. Elapsed time adds to the budget, work takes from it, and new work waits while
 * the budget is spent. `usedMs` returns the processor time that this thread (`own`) and the other threads of the process (`others`) have
 * used.
 */
export function createProcessorShare(
  clock: Clock,
  usedMs: () => { readonly own: number; readonly others: number },
  stopped: AbortSignal,
) {
  let savedMs = MOST_SAVED_MS
  let measured = { atMs: clock.nowMs(), ...usedMs() }
  let last: Promise<unknown> = Promise.resolve()
  const save = (): void => {
    const now = { atMs: clock.nowMs(), ...usedMs() }
    const elapsedMs = now.atMs - measured.atMs
    const idleMs = Math.max(0, elapsedMs - (now.others - measured.others))
    const earnedMs = elapsedMs * SMALLEST + idleMs * (LARGEST - SMALLEST)
    savedMs = Math.min(MOST_SAVED_MS, savedMs + earnedMs - (now.own - measured.own))
    measured = now
  }
  const begin = async (): Promise<void> => {
    save()
    while (savedMs <= 0 && !stopped.aborted) {
      await waitFor(CHECK_INTERVAL_MS, clock, stopped)
      save()
    }
    await new Promise<void>((resolve) => setImmediate(resolve))
  }
  return {
    /** Resolves once the budget has time left, or when `stopped` aborts. */
    begin,
    /** Runs `work` once all earlier work has ended and the budget has time left. */
    inTurn: <Result>(work: () => Promise<Result>): Promise<Result> => {
      const working = last.then(begin).then(work)
      last = working.catch(() => undefined)
      return working
    },
  }
}

/**
 * Sets the nice value of the calling thread on Linux, so that other threads run first. Does nothing on other systems or without permission.
 */
export function takePriority(nice: number): void {
  if (process.platform !== 'linux') return
  try {
    const thread = Number(readlinkSync('/proc/thread-self').split('/').at(-1))
    setPriority(thread, nice)
  } catch {
    // Without /proc, or under a security profile that forbids the call, the thread keeps its normal priority.
  }
}

/** Returns the processor time of the calling thread and of all other threads of the process, in milliseconds. */
export function usedMs(): { readonly own: number; readonly others: number } {
  const [own, all] = [process.threadCpuUsage(), process.cpuUsage()].map(
    ({ user, system }) => (user + system) / 1_000,
  )
  return { own: own ?? 0, others: (all ?? 0) - (own ?? 0) }
}
