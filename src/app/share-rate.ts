import type { SharedRateLimit } from '../journal/index.ts'
import type { RateSlots } from '../upstream/index.ts'

/** The rate limit that instances keep together, through the journal that they share. */
export interface RateSharing {
  /** The slots of one subscription key. */
  readonly slotsOf: (keyHash: string) => RateSlots
  /** Sets the store of the slots; before that, and while it cannot be reached, each instance limits its own calls. */
  use(store: SharedRateLimit): void
}

/** Creates it for a journal that is opened later. */
export function createRateSharing(): RateSharing {
  let store: SharedRateLimit | undefined
  return {
    // The journal reports its own failure; the limit of this instance applies meanwhile.
    slotsOf: (keyHash) => ({
      reserve: (limit, calls) =>
        store?.reserve(keyHash, limit, calls).catch(() => undefined) ?? Promise.resolve(undefined),
      pauseFor: (ms) => {
        store?.pauseFor(keyHash, ms).catch(() => undefined)
      },
    }),
    use: (shared) => {
      store = shared
    },
  }
}
