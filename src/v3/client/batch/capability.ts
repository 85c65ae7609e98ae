/** Whether an upstream has `$batch`, as far as it has shown. */
export interface BatchCapability {
  /** True if a batch may be sent now: batches work, were never tried, or failed long enough ago for another try. */
  mayTry(): boolean
  /** True when the next batch may be sent; takes nothing. */
  isOpen(): boolean
  worked(): void
  failed(): void
}

/** After a failure the upstream is asked again so much later. */
const RETRY_MS = 600_000

/** Creates the memory of one upstream and format. */
export function createBatchCapability(nowMs: () => number): BatchCapability {
  let closedUntilMs = -Infinity
  return {
    mayTry: () => {
      const open = closedUntilMs <= nowMs()
      // One batch probes again; the others wait for its result.
      if (open && closedUntilMs !== -Infinity) closedUntilMs = nowMs() + RETRY_MS
      return open
    },
    isOpen: () => closedUntilMs <= nowMs(),
    worked: () => {
      closedUntilMs = -Infinity
    },
    failed: () => {
      closedUntilMs = nowMs() + RETRY_MS
    },
  }
}
