/** A monotonic clock with timers. Tests advance their own clocks by hand. */
export interface Clock {
  /** Returns the milliseconds since an arbitrary start. The value never decreases. */
  nowMs(): number
  /** Calls `act` once after `delayMs`. Returns a function that cancels the call. */
  after(delayMs: number, act: () => void): () => void
}

/** A clock that also returns the current date and time. */
export interface WallClock extends Clock {
  /** Returns the milliseconds since the Unix epoch. */
  wallMs(): number
}

const createClock = (keepsAlive: boolean): WallClock => ({
  nowMs: () => performance.now(),
  wallMs: () => Date.now(),
  after: (delayMs, act) => {
    const timer = setTimeout(act, delayMs)
    if (!keepsAlive) timer.unref()
    return () => clearTimeout(timer)
  },
})

export const systemClock = createClock(true)

/** The system clock for background work. Its timers do not keep the process alive. */
export const backgroundClock = createClock(false)

/** Resolves after `ms` milliseconds, or when `stopped` is aborted while the function waits. */
export function waitFor(ms: number, clock: Pick<Clock, 'after'>, stopped?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      cancel()
      stopped?.removeEventListener('abort', end)
      resolve()
    }
    const cancel = clock.after(ms, end)
    stopped?.addEventListener('abort', end)
  })
}

/** Returns the result of `answer`, or rejects with `late` if there is no result within `ms` milliseconds. */
export async function inTime<Result>(
  answer: Promise<Result>,
  ms: number,
  clock: Pick<Clock, 'after'>,
  late: Error,
): Promise<Result> {
  const answered = new AbortController()
  const tooLate = waitFor(ms, clock, answered.signal).then(() => {
    throw late
  })
  return Promise.race([answer, tooLate]).finally(() => answered.abort())
}
