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

const nowMs = (): number => performance.now()
const wallMs = (): number => Date.now()

/** The machine's clock. */
export const systemClock: WallClock = {
  nowMs,
  wallMs,
  after: (delayMs, act) => {
    const timer = setTimeout(act, delayMs)
    return () => {
      clearTimeout(timer)
    }
  },
}

/** The machine's clock, for background work: its timers do not keep the process alive. */
export const backgroundClock: WallClock = {
  nowMs,
  wallMs,
  after: (delayMs, act) => {
    const timer = setTimeout(act, delayMs).unref()
    return () => {
      clearTimeout(timer)
    }
  },
}
