import { AsyncLocalStorage } from 'node:async_hooks'

/** Assigns an unhandled failure to the work that caused the failure, so that only this work fails. */
export interface FailureScope {
  /** Runs `work`, and returns its result. Rejects if `work` rejects, or if code of this work calls `fail`. */
  run<Result>(work: () => Promise<Result>): Promise<Result>
  /** Fails the innermost work that the running code belongs to. Does nothing if the code belongs to no work. */
  fail(cause: unknown): void
}

export function createFailureScope(): FailureScope {
  const works = new AsyncLocalStorage<(cause: unknown) => void>()
  return {
    run: (work) =>
      new Promise((resolve, reject) => {
        works.run(reject, work).then(resolve, reject)
      }),
    fail: (cause) => works.getStore()?.(cause),
  }
}
