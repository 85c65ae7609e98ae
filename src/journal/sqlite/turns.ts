/** Who may use the one connection. Everybody gets a turn in the order of asking. */
export interface Turns {
  /** Resolves when it is the caller's turn, with what ends it. */
  take(): Promise<() => void>
}

/** Creates turns that nobody has. */
export function createTurns(): Turns {
  let last: Promise<void> = Promise.resolve()
  return {
    take: () => {
      const before = last
      let end = (): void => undefined
      last = new Promise((resolve) => {
        end = resolve
      })
      return before.then(() => end)
    },
  }
}
