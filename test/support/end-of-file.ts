import { afterAll } from 'vitest'

/** Says what is to be closed; `onTestFinished` is one. */
export type OnEnd = (close: () => Promise<void>) => void

/** Closes what the tests of a file share after the last of them; to be called once, outside of the tests. */
export function atEndOfFile(): OnEnd {
  const closing: (() => Promise<void>)[] = []
  afterAll(async () => {
    for (const close of closing.reverse()) await close()
  })
  return (close) => closing.push(close)
}
