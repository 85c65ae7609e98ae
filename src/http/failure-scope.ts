import { AsyncLocalStorage } from 'node:async_hooks'

/** Attributes a failure that no code handles to the work that caused it, so that only that work fails. */
export interface FailureScope {
  /** Runs `work`. Rejects as `work` does, or with the cause that `fail` receives while code of this work runs. */
  run<Result>(work: () => Promise<Result>): Promise<Result>
  /** Fails the innermost work that the running code belongs to. Does nothing if the code belongs to none. */
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
