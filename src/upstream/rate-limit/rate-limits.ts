import { hash } from 'node:crypto'

import type { Clock } from '../../clock.ts'
import { createRateLimit, type OnAdmission, type RateLimit } from './rate-limit.ts'
import type { RateSlots } from './rate-slots.ts'
import type { CallPriority } from './waiting-line.ts'

/** The rate limits of all subscription keys; partners with one key share its calls (service-facts 9). */
export interface RateLimits {
  /** The limit of a key. Of several rates that are asked for, the lowest applies from then on. */
  of(subscriptionKey: string, callsPerSecond: number): RateLimit
  /** Lets the next requested rate of each key apply, whether it is lower or higher; sent and waiting calls still count. */
  forgetRates(): void
  /** How many calls of this kind wait, over all keys. */
  waiting(priority: CallPriority): number
}

/** Keys may come from clients: beyond this number idle ones are dropped. */
const MAX_KEPT = 1_000

/**
 * Creates the register; keys are kept as hashes. `onAdmission` is called for the calls of all keys; `slotsOf` gives the slots
 * that instances share, by the hash of the key.
 */
export function createRateLimits(
  clock: Clock,
  onAdmission?: OnAdmission,
  slotsOf?: (keyHash: string) => RateSlots,
): RateLimits {
  const known = new Map<string, { readonly limit: RateLimit; callsPerSecond: number }>()
  const dropIdle = (): void => {
    for (const [key, { limit }] of known) if (limit.isIdle()) known.delete(key)
  }
  return {
    of: (subscriptionKey, callsPerSecond) => {
      const key = hash('sha256', subscriptionKey)
      const before = known.get(key)
      if (before !== undefined) {
        if (callsPerSecond < before.callsPerSecond) {
          before.callsPerSecond = callsPerSecond
          before.limit.setRate(callsPerSecond)
        }
        return before.limit
      }
      if (known.size >= MAX_KEPT) dropIdle()
      const limit = createRateLimit({
        callsPerSecond,
        clock,
        ...(onAdmission === undefined ? {} : { onAdmission }),
        ...(slotsOf === undefined ? {} : { slots: slotsOf(key) }),
      })
      known.set(key, { limit, callsPerSecond })
      return limit
    },
    forgetRates: () => {
      for (const entry of known.values()) entry.callsPerSecond = Infinity
    },
    waiting: (priority) => {
      let count = 0
      for (const { limit } of known.values()) count += limit.waiting(priority)
      return count
    },
  }
}
