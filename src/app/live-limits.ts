import type { Config } from '../config/index.ts'
import { type BatchLimits, defaultBatchLimits } from '../v2/index.ts'

/** The limits in use, which a reload replaces. */
export interface LiveLimits {
  /** Of one request; the object never changes, so that a request keeps those that it began with. */
  readonly batch: () => BatchLimits
  replace(limits: Config['limits']): void
}

/** Creates them. */
export function createLiveLimits(
  first: Config['limits'],
  maxPartBytes = defaultBatchLimits.maxPartBytes,
): LiveLimits {
  const toBatch = (limits: Config['limits']): BatchLimits => ({
    ...defaultBatchLimits,
    ...limits,
    maxPartBytes,
  })
  let batch = toBatch(first)
  return {
    batch: () => batch,
    replace: (limits) => (batch = toBatch(limits)),
  }
}
