import type { Clock } from '../../clock.ts'

/** So many calls may leave within any window. */
export interface CallLimit {
  readonly calls: number
  readonly windowMs: number
}

/** When calls may leave; asking and taking are apart, since a token goes to the first in the queue at that time. */
export interface CallTokens {
  /** Time until the next call may leave; undefined: not known yet, and the caller is notified once it is. */
  waitMs(wanted: number): number | undefined
  /** Uses the token that is available. */
  take(): void
  isIdle(): boolean
  /** Changes the limit. Calls sent within the current window still count, so that a change gives no calls away. */
  setLimit(limit: CallLimit): void
}

/** A window is this much longer than the upstream's, since calls do not all take the same time to get there. */
export const JITTER_MS = 50

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
