import { hash } from 'node:crypto'

import type { Clock } from './clock.ts'
import { createThrottle, type OnAdmission, type Throttle } from './throttle.ts'
import type { SharedTurns } from './turns.ts'
import type { CallPriority } from './waiting-line.ts'

/** The throttles of all subscription keys; partners with one key share its calls (service-facts 9). */
export interface Throttles {
  /** The throttle of a key. Where it was made for a higher rate, the lower one counts from then on. */
  of(subscriptionKey: string, callsPerSecond: number): Throttle
  /** How many calls of this kind wait, over all keys. */
  waiting(priority: CallPriority): number
}

/** Keys may come from clients: more than so many are not kept, unless they are busy. */
const MAX_KEPT = 1_000

/**
 * Creates the register; keys are kept as hashes. `onAdmission` hears of the calls of all keys; `shareTurns` gives the turns that
 * other instances share, by the hash of the key.
 */
export function createThrottles(
  clock: Clock,
  onAdmission?: OnAdmission,
  shareTurns?: (keyHash: string) => SharedTurns,
): Throttles {
  const known = new Map<string, { readonly throttle: Throttle; readonly callsPerSecond: number }>()
  const forgetIdle = (): void => {
    for (const [key, { throttle }] of known) if (throttle.isIdle()) known.delete(key)
  }
  return {
    of: (subscriptionKey, callsPerSecond) => {
      const key = hash('sha256', subscriptionKey)
      const before = known.get(key)
      if (before !== undefined && before.callsPerSecond <= callsPerSecond) return before.throttle
      if (known.size >= MAX_KEPT) forgetIdle()
      const throttle = createThrottle({
        callsPerSecond,
        clock,
        ...(onAdmission === undefined ? {} : { onAdmission }),
        ...(shareTurns === undefined ? {} : { shared: shareTurns(key) }),
      })
      known.set(key, { throttle, callsPerSecond })
      return throttle
    },
    waiting: (priority) => {
      let count = 0
      for (const { throttle } of known.values()) count += throttle.waiting(priority)
      return count
    },
  }
}
