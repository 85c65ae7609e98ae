import type { Clock } from '../clock.ts'

/** So many calls may leave within any window. */
export interface CallLimit {
  readonly calls: number
  readonly windowMs: number
}

/** When calls may leave; asking and taking are apart, since a token goes to the first in the queue at that time. */
interface CallTokens {
  /** Time until the next call may leave; undefined: not known yet, and the caller is notified once it is. */
  waitMs(wanted: number): number | undefined
  /** Uses the token that is available. */
  take(): void
  isIdle(): boolean
  /** Changes the limit. Calls sent within the current window still count, so that a change gives no calls away. */
  setLimit(limit: CallLimit): void
}

/** A window is this much longer than the upstream's, since calls do not all take the same time to get there. */
const JITTER_MS = 50

/** The limit that keeps any second to `callsPerSecond`; a fraction means one call in more than a second. */
export function toCallLimit(callsPerSecond: number): CallLimit {
  const calls = Math.max(1, Math.floor(callsPerSecond))
  return { calls, windowMs: (calls / callsPerSecond) * 1_000 + JITTER_MS }
}

/**
 * The tokens of this instance, each of which returns one window after it was taken. So no second ever sees more calls than
 * allowed, also when the upstream counts a sliding window, and a small batch leaves at once.
 */
export function createTokenBucket(initial: CallLimit, clock: Clock): CallTokens {
  let { calls: tokens, windowMs } = initial
  /** When the latest calls left, as many as the highest limit so far has tokens; the oldest is at `next`. */
  let leftMs = new Array<number>(tokens).fill(-Infinity)
  let next = 0
  /** When the token that the `nth` latest call took may be taken again. */
  const backMs = (nth: number): number =>
    (leftMs[(next - nth + leftMs.length) % leftMs.length] ?? -Infinity) + windowMs
  return {
    waitMs: () => Math.max(0, backMs(tokens) - clock.nowMs()),
    take: () => {
      leftMs[next] = clock.nowMs()
      next = (next + 1) % leftMs.length
    },
    isIdle: () => backMs(1) <= clock.nowMs(),
    setLimit: (limit) => {
      const unused = new Array<number>(Math.max(0, limit.calls - leftMs.length)).fill(-Infinity)
      leftMs = [...unused, ...leftMs.slice(next), ...leftMs.slice(0, next)]
      next = 0
      ;({ calls: tokens, windowMs } = limit)
    },
  }
}

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
