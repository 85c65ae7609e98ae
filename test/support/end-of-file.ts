import { afterAll } from 'vitest'

/** Registers a function that closes a resource, like `onTestFinished`. */
export type OnEnd = (close: () => Promise<void>) => void

/** Closes the shared resources of a file after its last test. Call this once, outside of the tests. */
export function atEndOfFile(): OnEnd {
  const closing: (() => Promise<void>)[] = []
  afterAll(async () => {
    for (const close of closing.reverse()) await close()
  })
  return (close) => closing.push(close)
}
