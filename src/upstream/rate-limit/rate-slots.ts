import type { Clock } from '../../clock.ts'
import { type CallLimit, type CallTokens, createTokenBucket, JITTER_MS } from './token-bucket.ts'

/** Slots of one subscription key that several instances share. */
export interface RateSlots {
  /**
   * Reserves slots of all instances and resolves with the time until each, in order. Undefined: the shared store cannot be
   * reached, and each instance applies the limit on its own. Never rejects.
   */
  reserve(limit: CallLimit, calls: number): Promise<readonly number[] | undefined>
  /** Pauses the calls of all instances for this time. */
  pauseFor(ms: number): void
  /** Time since the last pause of all instances ended, ms: negative while it lasts, Infinity without one. Undefined: the store cannot be reached. */
  sincePauseMs(): Promise<number | undefined>
}

/** This share of a window's slots is reserved at a time: few questions, and no instance has to wait long for another. */
const SHARE = 4
/** The window of all instances is longer by this time, since the age of a slow reply is unknown. */
const ANSWER_MS = 100

/** A slot that was reserved. */
interface Reserved {
  readonly atMs: number
  /** Used later it could be one call too many. */
  readonly untilMs: number
}

/**
 * Tokens that are reserved among all instances, a few at a time and only while calls wait. A slot that is not used in time
 * is lost. `onKnown` is called when a time that was asked for is known.
 */
export function createReservedSlots(
  own: CallLimit,
  clock: Clock,
  shared: RateSlots,
  onKnown: () => void,
): CallTokens {
  const bucket = createTokenBucket(own, clock)
  const withSlack = ({ calls, windowMs }: CallLimit): CallLimit => ({ calls, windowMs: windowMs + ANSWER_MS })
  let limit = withSlack(own)
  let reserved: Reserved[] = []
  let asking = false
  const ask = (wanted: number): void => {
    if (asking) return
    asking = true
    const askedMs = clock.nowMs()
    void shared.reserve(limit, Math.min(wanted, Math.ceil(limit.calls / SHARE))).then((waits) => {
      asking = false
      const nowMs = clock.nowMs()
      const slackMs = Math.max(JITTER_MS, JITTER_MS + ANSWER_MS - (nowMs - askedMs))
      for (const waitMs of waits ?? [bucket.waitMs(1) ?? 0])
        reserved.push({ atMs: nowMs + waitMs, untilMs: nowMs + waitMs + slackMs })
      onKnown()
    })
  }
  return {
    waitMs: (wanted) => {
      const nowMs = clock.nowMs()
      reserved = reserved.filter(({ untilMs }) => untilMs >= nowMs)
      const [first] = reserved
      if (first !== undefined) return Math.max(0, first.atMs - nowMs)
      ask(wanted)
      return undefined
    },
    take: () => {
      reserved.shift()
      bucket.take()
    },
    isIdle: () => !asking && bucket.isIdle(),
    setLimit: (changed) => {
      limit = withSlack(changed)
      bucket.setLimit(changed)
    },
  }
}
