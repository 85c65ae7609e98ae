import type { Clock } from '../../clock.ts'
import type { CallLimit, RateSlots } from '../../upstream/index.ts'

/** The rate of comparisons as the instances of one journal share it, by names. Rejects while the journal cannot be reached. */
export interface PaceStore {
  /** Reserves the next slots of a name; resolves with the time until each in ms, in order. */
  reserve(name: string, limit: CallLimit, calls: number): Promise<readonly number[]>
  /** Notes a pause of a name that begins now. */
  pauseFor(name: string, ms: number): Promise<void>
  /** Time since the last pause of a name ended, ms. */
  sincePauseMs(name: string): Promise<number>
}

export interface SharedPaceOptions {
  readonly name: string
  readonly store: PaceStore
  /** False: the service does not limit this side, so each instance counts for itself. */
  readonly isLimited: () => boolean
  /** A pause that could not be stored is stored later, until it is older than this. */
  readonly keepMs: number
  readonly clock: Clock
  readonly stopped: AbortSignal
}

/** Time between two tries to reach the journal. */
export const RETRY_MS = 1_000
/** Calls of this time are reserved at once. */
const AHEAD_MS = 1_000

/** Creates the slots of one side: evenly spaced, since comparisons make one call after another, and none while the journal cannot be reached. */
export function createSharedPace(options: SharedPaceOptions): RateSlots {
  const { name, store, isLimited, keepMs, clock, stopped } = options
  const keepPause = async (ms: number, untilMs: number): Promise<void> => {
    try {
      await store.pauseFor(name, ms)
    } catch {
      // The journal reports its own failure.
      if (clock.nowMs() < untilMs && !stopped.aborted)
        clock.after(RETRY_MS, () => void keepPause(ms, untilMs))
    }
  }
  return {
    reserve: async ({ calls, windowMs }) => {
      if (!isLimited()) return undefined
      const spacingMs = windowMs / calls
      try {
        return await store.reserve(name, { calls: 1, windowMs: spacingMs }, Math.ceil(AHEAD_MS / spacingMs))
      } catch {
        // Who waits asks again then.
        await new Promise<void>((resolve) => void clock.after(RETRY_MS, resolve))
        return []
      }
    },
    pauseFor: (ms) => void keepPause(ms, clock.nowMs() + keepMs),
    sincePauseMs: () => store.sincePauseMs(name).catch(() => undefined),
  }
}
