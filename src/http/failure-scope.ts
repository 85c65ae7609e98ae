import { AsyncLocalStorage } from 'node:async_hooks'

/** Traces a failure that no code handles to the work that it belongs to, so that this work fails and everything else goes on. */
export interface FailureScope {
  /** Runs work. Rejects as the work does, or with the cause that `fail` is given while code of this work runs. */
  run<Result>(work: () => Promise<Result>): Promise<Result>
  /** Fails the innermost work to which the running code belongs. Does nothing if it belongs to none. */
  fail(cause: unknown): void
}

/** Creates the scope of one adapter. */
export function createFailureScope(): FailureScope {
  const works = new AsyncLocalStorage<(cause: unknown) => void>()
  return {
    run: (work) => {
      const { promise: failed, reject } = Promise.withResolvers<never>()
      return Promise.race([works.run(reject, work), failed])
    },
    fail: (cause) => works.getStore()?.(cause),
  }
}
