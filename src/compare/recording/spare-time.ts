import type { Clock } from '../../clock.ts'
import type { Slices } from '../../http/slices.ts'
import { waitFor } from '../../clock/wait-for.ts'

/** The turns of one piece of work; a slice of it takes about `TURN_MS`, whatever is spent. */
export interface SpareWork extends Slices {
  /** Ends the last turn. */
  end(): void
}

/** The part of the processor's time that recordings may use: clients of the same process go first. */
export interface SpareTime {
  /** Resolves once there is time to spare, in a turn of its own; at once after the end of the adapter. */
  begin(): Promise<SpareWork>
}

interface SpareTimeOptions {
  readonly clock: Clock
  /** Time that the process was idle since its start, ms. */
  readonly idleMs: () => number
  /** Runs work in a turn of its own. */
  readonly later: (act: () => void) => void
  readonly stopped: AbortSignal
}

/** A request of a client that arrives in a turn of a recording waits for its end. */
const TURN_MS = 0.5
/** Of the time that the process would be idle. */
const SHARE_OF_IDLE = 1 / 3
/** Of all time, so that recordings go on where clients leave none idle. */
const SHARE_OF_ALL = 1 / 50
/** Unused time is kept up to here. */
const MOST_SAVED_MS = 50
/** How often a piece of work that waits asks whether there is time. */
const ASK_MS = 10

/** Creates the account of one process: idle time adds to it, recordings take from it, and wait while nothing is left. */
export function createSpareTime({ clock, idleMs, later, stopped }: SpareTimeOptions): SpareTime {
  let savedMs = MOST_SAVED_MS
  let [seenMs, seenIdleMs] = [clock.nowMs(), idleMs()]
  const save = (): void => {
    const [now, idle] = [clock.nowMs(), idleMs()]
    savedMs += (idle - seenIdleMs) * SHARE_OF_IDLE + (now - seenMs) * SHARE_OF_ALL
    savedMs = Math.min(MOST_SAVED_MS, savedMs)
    seenMs = now
    seenIdleMs = idle
  }
  const untilSaved = async (): Promise<void> => {
    save()
    while (savedMs <= 0 && !stopped.aborted) {
      await waitFor(ASK_MS, clock, stopped)
      save()
    }
    await new Promise<void>(later)
  }
  return {
    begin: async () => {
      await untilSaved()
      let beganMs = clock.nowMs()
      const end = (): void => {
        savedMs -= clock.nowMs() - beganMs
      }
      return {
        end,
        spend: () => clock.nowMs() - beganMs >= TURN_MS,
        next: async () => {
          end()
          await untilSaved()
          beganMs = clock.nowMs()
        },
      }
    },
  }
}
