/** A mutex for the one connection. Callers get it in the order of their requests. */
export interface ConnectionMutex {
  /** Resolves when it is the caller's turn, with what ends it. */
  lock(): Promise<() => void>
}

/** Creates a mutex that is free. */
export function createConnectionMutex(): ConnectionMutex {
  let last: Promise<void> = Promise.resolve()
  return {
    lock: () => {
      const before = last
      let end = (): void => undefined
      last = new Promise((resolve) => {
        end = resolve
      })
      return before.then(() => end)
    },
  }
}
