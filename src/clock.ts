/** Monotonic time and timers; tests advance it by hand. */
export interface Clock {
  /** Milliseconds that never go back; where they count from does not matter. */
  nowMs(): number
  /** Calls `act` once after `delayMs`; the returned function cancels it. */
  after(delayMs: number, act: () => void): () => void
}

/** A clock that also knows the date. */
export interface WallClock extends Clock {
  /** Milliseconds since the epoch. */
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

/** The machine's clock. */
export const systemClock = createClock(true)

/** The machine's clock, for background work: its timers do not keep the process alive. */
export const backgroundClock = createClock(false)

/** Resolves after this time, or once `stopped` is aborted. */
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

/** The result of `answer`, or a rejection with `late` after this time. */
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
