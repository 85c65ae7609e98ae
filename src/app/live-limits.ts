import type { Config } from '../config/index.ts'
import { type BatchLimits, defaultBatchLimits } from '../v2/index.ts'

/** The limits in use, which a reload replaces. */
export interface LiveLimits {
  /** Of one request; the object never changes, so that a request keeps those that it began with. */
  readonly batch: () => BatchLimits
  /** Of clients that are watched; the object changes. */
  readonly slowClients: Config['limits']['slowClients']
  replace(limits: Config['limits']): void
}

/** Creates them. */
export function createLiveLimits(first: Config['limits']): LiveLimits {
  const toBatch = (limits: Config['limits']): BatchLimits => ({ ...defaultBatchLimits, ...limits })
  let batch = toBatch(first)
  const slowClients = { ...first.slowClients }
  return {
    batch: () => batch,
    slowClients,
    replace: (limits) => {
      batch = toBatch(limits)
      Object.assign(slowClients, limits.slowClients)
    },
  }
}
