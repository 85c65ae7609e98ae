/** The requests in flight, including those whose client has disconnected. */
export interface InFlight {
  /** Counts a request until the function that is returned is called. */
  enter(): () => void
  /** Resolves when nothing is being handled; ask it only when no new request can come. */
  idle(): Promise<void>
  /** Requests that are being handled now. */
  count(): number
}

/** Creates the count that a shutdown waits for. */
export function createInFlight(): InFlight {
  let count = 0
  let waiting: (() => void)[] = []
  const leave = (): void => {
    count -= 1
    if (count > 0) return
    for (const wake of waiting) wake()
    waiting = []
  }
  return {
    enter: () => {
      count += 1
      return leave
    },
    idle: () => (count === 0 ? Promise.resolve() : new Promise((resolve) => waiting.push(resolve))),
    count: () => count,
  }
}
