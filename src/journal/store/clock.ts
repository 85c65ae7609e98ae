/** Time as the journal uses it: tests turn it by hand. */
export interface JournalClock {
  /** Milliseconds that never go back; where they count from does not matter. */
  nowMs(): number
  /** Milliseconds since the epoch. */
  wallMs(): number
  /** Calls `act` once after `delayMs`; the returned function calls it off. Never keeps the process alive. */
  after(delayMs: number, act: () => void): () => void
}

/** The machine's own clock. */
export const systemClock: JournalClock = {
  nowMs: () => performance.now(),
  wallMs: () => Date.now(),
  after: (delayMs, act) => {
    const timer = setTimeout(act, delayMs).unref()
    return () => {
      clearTimeout(timer)
    }
  },
}
