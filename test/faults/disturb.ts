import { setTimeout as delay } from 'node:timers/promises'

/** A disturbance that repeats until it is stopped. */
export interface Disturbance {
  count(): number
  /** Stops the disturbance, and resolves when the last run is over. */
  stop(): Promise<void>
}

/**
 * Runs `act` repeatedly with a pause before each run. Runs that resolve with false are not counted. Stopping cuts the pauses and the waits
 * of `act` short.
 */
export function disturb(
  pauseMs: () => number,
  act: (wait: (ms: number) => Promise<void>) => unknown,
): Disturbance {
  const stopping = new AbortController()
  const { signal } = stopping
  const isOver = (): boolean => signal.aborted
  const wait = (ms: number): Promise<void> => delay(ms, undefined, { signal }).catch(() => undefined)
  let count = 0
  const run = async (): Promise<void> => {
    while (!isOver()) {
      await wait(pauseMs())
      if (!isOver() && (await act(wait)) !== false) count += 1
    }
  }
  const running = run()
  return {
    count: () => count,
    stop: async () => {
      stopping.abort()
      await running
    },
  }
}
