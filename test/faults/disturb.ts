import { setTimeout as delay } from 'node:timers/promises'

/** Something that happens again and again until it is stopped. */
export interface Disturbance {
  /** How often it happened. */
  count(): number
  /** Resolves when the last time is over. */
  stop(): Promise<void>
}

/**
 * Does `act` again and again, each time after a pause; what resolves false did not happen. The pauses, and what `act` itself waits, are cut
 * short by the end.
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
