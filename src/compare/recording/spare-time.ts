import type { Clock } from '../../clock.ts'
import { createProcessorShare } from '../processor-share.ts'
import type { RecordingWork } from './recording-work.ts'

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

/**
 * Gives recordings the part of the processor's time that they may use: clients of the same process go first. Resolves once there is time to
 * spare, in a turn of its own; at once after the end of the adapter.
 */
export function createSpareTime({ idleMs, ...options }: SpareTimeOptions): () => Promise<RecordingWork> {
  let seenIdleMs = idleMs()
  const share = createProcessorShare({
    ...options,
    earnMs: (elapsedMs) => {
      const newIdleMs = idleMs() - seenIdleMs
      seenIdleMs += newIdleMs
      return newIdleMs * SHARE_OF_IDLE + elapsedMs * SHARE_OF_ALL
    },
  })
  const nowMs = (): number => options.clock.nowMs()
  return async () => {
    await share.begin()
    let beganMs = nowMs()
    const end = (): void => share.spent(nowMs() - beganMs)
    return {
      end,
      spend: () => nowMs() - beganMs >= TURN_MS,
      next: async () => {
        end()
        await share.begin()
        beganMs = nowMs()
      },
    }
  }
}
