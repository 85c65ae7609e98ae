import { AsyncLocalStorage } from 'node:async_hooks'

/** Assigns an unhandled failure to the work that caused it, so that only this work fails and the process continues. */
export interface FailureScope {
  /** Runs `work` and returns its result. Rejects if `work` rejects, or if code that `work` started calls `fail`. */
  run<Result>(work: () => Promise<Result>): Promise<Result>
  /** Fails the innermost `work` that started the running code. Does nothing if no `work` started the code. */
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
