import { AdapterError } from '../errors.ts'
import type { SharedRateLimit } from '../journal/index.ts'
import type { RateSlots } from '../upstream/index.ts'

/** The rate limit that instances keep together, through the journal that they share. */
export interface RateSharing {
  /** The slots of one subscription key. */
  readonly slotsOf: (keyHash: string) => RateSlots
  /** The store itself, for what must not go on without it. Rejects before it is set. */
  readonly store: SharedRateLimit
  /** Sets the store of the slots; before that, and while it cannot be reached, each instance limits its own calls. */
  use(store: SharedRateLimit): void
}

/** Creates it for a journal that is opened later. */
export function createRateSharing(): RateSharing {
  let store: SharedRateLimit | undefined
  const ask = async <Result>(question: (opened: SharedRateLimit) => Promise<Result>): Promise<Result> => {
    if (store !== undefined) return question(store)
    throw new AdapterError('ADP_JOURNAL_UNAVAILABLE', 'The journal has not been reached since the start.')
  }
  return {
    // The journal reports its own failure; the limit of this instance applies meanwhile.
    slotsOf: (keyHash) => ({
      reserve: (limit, calls) =>
        store?.reserve(keyHash, limit, calls).catch(() => undefined) ?? Promise.resolve(undefined),
      pauseFor: (ms) => {
        store?.pauseFor(keyHash, ms).catch(() => undefined)
      },
      sincePauseMs: () => ask((opened) => opened.sincePauseMs(keyHash)).catch(() => undefined),
    }),
    store: {
      reserve: (name, limit, calls) => ask((opened) => opened.reserve(name, limit, calls)),
      pauseFor: (name, ms) => ask((opened) => opened.pauseFor(name, ms)),
      sincePauseMs: (name) => ask((opened) => opened.sincePauseMs(name)),
    },
    use: (shared) => {
      store = shared
    },
  }
}
