/** Time as the client uses it: tests turn it by hand. */
export interface Clock {
  /** Milliseconds that never go back; where they count from does not matter. */
  nowMs(): number
  /** Calls `act` once after `delayMs`; the returned function calls it off. */
  after(delayMs: number, act: () => void): () => void
}

/** The machine's own clock. */
export const systemClock: Clock = {
  nowMs: () => performance.now(),
  after: (delayMs, act) => {
    const timer = setTimeout(act, delayMs)
    return () => {
      clearTimeout(timer)
    }
  },
}
