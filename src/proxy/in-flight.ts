/** The requests that are being handled, also those whose client went away. */
export interface InFlight {
  /** Runs a handler and counts it until it ends. */
  run(work: () => Promise<void>): Promise<void>
  /** Resolves when nothing is being handled; ask it only when no new request can come. */
  idle(): Promise<void>
  /** Requests that are being handled now. */
  count(): number
}

/** Creates the count that a shutdown waits for. */
export function createInFlight(): InFlight {
  let count = 0
  let waiting: (() => void)[] = []
  return {
    run: async (work) => {
      count += 1
      try {
        await work()
      } finally {
        count -= 1
        if (count === 0) {
          for (const wake of waiting) wake()
          waiting = []
        }
      }
    },
    idle: () => (count === 0 ? Promise.resolve() : new Promise((resolve) => waiting.push(resolve))),
    count: () => count,
  }
}
