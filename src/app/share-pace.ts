import type { SharedRateLimit } from '../journal/index.ts'
import type { SharedTurns } from '../v3/index.ts'

/** The pace that instances keep together, as far as there is a journal that they share. */
export interface PaceSharing {
  /** The turns of one subscription key. */
  readonly turnsOf: (keyHash: string) => SharedTurns
  /** Says which pace to keep; before that, and where it cannot be reached, each instance keeps its own. */
  use(pace: SharedRateLimit): void
}

/** Creates it for a journal that is opened later. */
export function createPaceSharing(): PaceSharing {
  let pace: SharedRateLimit | undefined
  return {
    // The journal has told of its own failure; the limit of this instance holds all the while.
    turnsOf: (keyHash) => ({
      reserve: (limit, calls) =>
        pace?.reserve(keyHash, limit, calls).catch(() => undefined) ?? Promise.resolve(undefined),
      hold: (ms) => {
        pace?.pauseFor(keyHash, ms).catch(() => undefined)
      },
    }),
    use: (shared) => {
      pace = shared
    },
  }
}
