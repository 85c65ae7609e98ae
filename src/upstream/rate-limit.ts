import { hash } from 'node:crypto'

import type { Clock } from '../clock.ts'
import {
  type CallPriority,
  FairQueue,
  NEWCOMERS,
  type QueueKey,
  type Refusal,
  soleQueue,
} from './fair-queue.ts'

/** The decision on a call. A refused call must not be sent. */
export type Admission =
  | { readonly admitted: true; readonly waitedMs: number }
  | { readonly admitted: false; readonly waitedMs: number; readonly reason: Refusal }

type OnAdmission = (priority: CallPriority, admission: Admission) => void

interface RateLimitOptions {
  /** The maximum number of calls in any second. A rate of 0.5 means one call in two seconds. */
  readonly callsPerSecond: number
  readonly clock: Clock
  /** Maximum number of waiting calls, which owners share. Further calls are refused. Default: 1,000. */
  readonly maxWaiting?: number
  readonly onAdmission?: OnAdmission | undefined
  /**
   * The slots that all instances share, so that the limit holds for all instances together. An instance limits only its own calls while no
   * other instance is alive. It also does so until V3 or V2 has accepted a client with the key, so that nothing is stored for an invented
   * key.
   */
  readonly slots?: RateSlots | undefined
  /**
   * True for a configured key. For another key, the instance uses `slots` only once V3 or V2 has accepted a client with the key. Default:
   * true.
   */
  readonly isConfigured?: boolean
}

/**
 * The rate limit of one subscription key (service-facts 9). Every caller of the upstream must call `acquire` first:
 *
 * ```ts
 * const { admitted } = await rateLimit.acquire('read', budgetMs, queueKey)
 * if (!admitted) throw new AdapterError('ADP_OVERLOADED', …) // 503: nothing was sent
 * const reply = await pool.request(…)
 * if (reply.statusCode === 429) rateLimit.pauseFor(waitMs) // then acquire again, or give up
 * ```
 *
 * One `acquire` admits one request on the wire: a page, a record or a whole `$batch`. Nothing has to be released afterwards.
 */
export interface RateLimit {
  /** Resolves with the decision whether the call may be sent. Never rejects. If `signal` aborts, the place in the queue is released. */
  acquire(
    priority: CallPriority,
    waitMs: number,
    queueKey?: QueueKey,
    signal?: AbortSignal,
  ): Promise<Admission>
  /** Pauses all calls for `ms` milliseconds after the upstream replied 429. Never shortens an earlier pause. */
  pauseFor(ms: number): void
  /**
   * Returns the milliseconds since the last 429 of this instance, or since the pause of another instance ended, whichever is less. The
   * value is negative while a pause of another instance lasts, `Infinity` if there was no pause, and `undefined` if the shared store cannot
   * be reached. A pause of another instance may be noticed a second late.
   */
  sincePauseMs(): Promise<number | undefined>
  /** Changes the rate. Waiting calls keep waiting, and calls that were already sent count against the new rate. */
  setRate(callsPerSecond: number): void
  waiting(priority: CallPriority): number
  /** Returns true if no call is waiting, no call was sent within the window and no pause lasts, so that the limit may be removed. */
  isIdle(): boolean
}

/** Maximum age in milliseconds of the cached end of the last pause. */
const PAUSES_MAX_AGE_MS = 1_000

/**
 * Creates the rate limit from a queue of calls and the tokens that admit the calls. The tokens belong to this instance, or are shared by
 * all instances.
 */
export function createRateLimit(options: RateLimitOptions): RateLimit {
  const { callsPerSecond, clock, maxWaiting = 1_000, onAdmission } = options
  const limit = toCallLimit(callsPerSecond)
  let isAccepted = options.isConfigured ?? true
  const slots = (): RateSlots | undefined => (isAccepted ? options.slots : undefined)
  const tokens =
    options.slots === undefined
      ? createTokenBucket(limit, clock)
      : createReservedSlots(limit, clock, slots, () => serve())
  let pausedUntilMs = -Infinity
  let lastPauseMs = -Infinity
  /** The end of the last pause of all instances, as last read from the shared store, and the time of this read. */
  let shared = { pauseMs: -Infinity, askedMs: -Infinity }
  let cancelWake: (() => void) | undefined
  /**
   * Returns the time until the next call may be sent, or `undefined` if the time is not known yet. Once the time is known, `serve` is
   * called.
   */
  const waitMs = (): number | undefined => {
    const tokenMs = tokens.waitMs(Math.max(1, queue.size))
    return tokenMs === undefined ? undefined : Math.max(tokenMs, pausedUntilMs - clock.nowMs())
  }
  const queue = new FairQueue(
    {
      mayTake: (holder) => {
        isAccepted ||= holder !== NEWCOMERS
        return (waitMs() ?? 1) <= 0
      },
      take: () => tokens.take(),
    },
    clock,
    maxWaiting,
  )
  const serve = (): void => {
    cancelWake?.()
    cancelWake = undefined
    queue.serve()
    const ms = queue.size === 0 ? undefined : waitMs()
    if (ms !== undefined) cancelWake = clock.after(Math.ceil(ms), serve)
  }
  return {
    acquire: (priority, longestMs, queueKey = soleQueue, signal) => {
      const sinceMs = clock.nowMs()
      return new Promise((resolve) => {
        const decide = (reason?: Refusal): void => {
          const waitedMs = clock.nowMs() - sinceMs
          const admission: Admission =
            reason === undefined ? { admitted: true, waitedMs } : { admitted: false, waitedMs, reason }
          onAdmission?.(priority, admission)
          resolve(admission)
        }
        if (signal?.aborted === true) {
          decide('gone')
          return
        }
        queue.enter({
          queueKey,
          priority,
          waitMs: longestMs,
          signal: signal && (() => signal),
          admit: () => decide(),
          refuse: decide,
        })
        if (queue.size > 0) serve()
      })
    },
    sincePauseMs: async () => {
      const askedMs = clock.nowMs()
      const others = slots()
      if (others !== undefined && askedMs - shared.askedMs >= PAUSES_MAX_AGE_MS) {
        const sinceMs = await others.sincePauseMs()
        if (sinceMs === undefined) return undefined
        shared = { pauseMs: askedMs - sinceMs, askedMs }
      }
      return clock.nowMs() - Math.max(lastPauseMs, shared.pauseMs)
    },
    pauseFor: (ms) => {
      lastPauseMs = clock.nowMs()
      pausedUntilMs = Math.max(pausedUntilMs, clock.nowMs() + ms)
      slots()?.pauseFor(ms)
      serve()
    },
    setRate: (rate) => {
      tokens.setLimit(toCallLimit(rate))
      serve()
    },
    waiting: (priority) => queue.sizeOf(priority),
    isIdle: () => queue.size === 0 && tokens.isIdle() && pausedUntilMs <= clock.nowMs(),
  }
}

/** The rate limits of all subscription keys. Partners with the same key share its calls (service-facts 9). */
export interface RateLimits {
  /** Returns the limit of a key. Of several requested rates the lowest applies. `isConfigured` is false for a key that a client sent. */
  of(subscriptionKey: string, callsPerSecond: number, isConfigured?: boolean): RateLimit
  /**
   * Forgets the requested rates, so that the next call of `of` for a key sets its rate. Waiting calls and calls that were sent still count.
   */
  forgetRates(): void
  waiting(priority: CallPriority): number
}

/** The number of keys above which the rate limits of idle keys are evicted, because clients may send any key. */
const MAX_KEYS = 1_000

/** Creates the rate limits. Keys are stored as hashes. `slotsOf` returns the slots that all instances share, by the hash of the key. */
export function createRateLimits(
  clock: Clock,
  onAdmission?: OnAdmission,
  slotsOf?: (keyHash: string) => RateSlots,
): RateLimits {
  const known = new Map<string, { readonly limit: RateLimit; callsPerSecond: number }>()
  const dropIdle = (): void => {
    for (const [key, { limit }] of known) if (limit.isIdle()) known.delete(key)
  }
  return {
    of: (subscriptionKey, callsPerSecond, isConfigured = true) => {
      const key = hash('sha256', subscriptionKey)
      const before = known.get(key)
      if (before !== undefined) {
        if (callsPerSecond < before.callsPerSecond) {
          before.callsPerSecond = callsPerSecond
          before.limit.setRate(callsPerSecond)
        }
        return before.limit
      }
      if (known.size >= MAX_KEYS) dropIdle()
      const limit = createRateLimit({
        callsPerSecond,
        clock,
        onAdmission,
        slots: slotsOf?.(key),
        isConfigured,
      })
      known.set(key, { limit, callsPerSecond })
      return limit
    },
    forgetRates: () => {
      for (const entry of known.values()) entry.callsPerSecond = Infinity
    },
    waiting: (priority) => {
      let count = 0
      for (const { limit } of known.values()) count += limit.waiting(priority)
      return count
    },
  }
}

/** A limit: at most `calls` calls in any window of `windowMs` milliseconds. */
export interface CallLimit {
  readonly calls: number
  readonly windowMs: number
}

/**
 * Decides when calls may be sent. `waitMs` does not take a token, because the token goes to the call that is first in the queue after the
 * wait.
 */
interface CallTokens {
  /**
   * Returns the time until the next call may be sent, or `undefined` if the time is not known yet. `wanted` is the number of waiting calls.
   */
  waitMs(wanted: number): number | undefined
  take(): void
  isIdle(): boolean
  /** Changes the limit. Calls of the current window still count, so that a change does not allow additional calls. */
  setLimit(limit: CallLimit): void
}

/** The milliseconds by which a window is longer than the upstream's, because calls take different times to arrive. */
const JITTER_MS = 50

/** Returns the limit for a rate. A rate below 1 becomes one call in a window of more than a second. */
function toCallLimit(callsPerSecond: number): CallLimit {
  const calls = Math.max(1, Math.floor(callsPerSecond))
  return { calls, windowMs: (calls / callsPerSecond) * 1_000 + JITTER_MS }
}

/** Creates the tokens of this instance. A token is available again a full window after its use, so no sliding window has too many calls. */
function createTokenBucket(initial: CallLimit, clock: Clock): CallTokens {
  let { calls: tokens, windowMs } = initial
  /** The times of the latest calls, one entry for each token of the highest limit so far. The oldest entry is at `next`. */
  let sentMs = new Array<number>(tokens).fill(-Infinity)
  let next = 0
  /** Returns the time at which the token of the `nth` latest call is available again. */
  const backMs = (nth: number): number =>
    (sentMs[(next - nth + sentMs.length) % sentMs.length] ?? -Infinity) + windowMs
  return {
    waitMs: () => Math.max(0, backMs(tokens) - clock.nowMs()),
    take: () => {
      sentMs[next] = clock.nowMs()
      next = (next + 1) % sentMs.length
    },
    isIdle: () => backMs(1) <= clock.nowMs(),
    setLimit: (limit) => {
      const unused = new Array<number>(Math.max(0, limit.calls - sentMs.length)).fill(-Infinity)
      sentMs = [...unused, ...sentMs.slice(next), ...sentMs.slice(0, next)]
      next = 0
      ;({ calls: tokens, windowMs } = limit)
    },
  }
}

/** The slots of one subscription key, which several instances share. A slot is a time at which one call may be sent. */
export interface RateSlots {
  /** Returns the monotonic time since which no other instance has been alive, or `undefined` while another instance may be alive. */
  aloneSinceMs(): number | undefined
  /**
   * Reserves slots in the shared store. Resolves with the milliseconds until each slot, or `undefined` if the store fails. Never rejects.
   */
  reserve(limit: CallLimit, calls: number): Promise<readonly number[] | undefined>
  pauseFor(ms: number): void
  /** Returns the milliseconds since the last pause of all instances ended, with the same special values as `RateLimit.sincePauseMs`. */
  sincePauseMs(): Promise<number | undefined>
}

/**
 * One reservation takes at most a quarter of the slots of a window. Larger reservations need fewer queries, and smaller ones let other
 * instances wait less.
 */
const PARTS = 4
/** The milliseconds added to a shared window, because a slow reply does not show when the store computed it. */
const ANSWER_MS = 100

interface Reserved {
  readonly atMs: number
  /** The time after which the slot must not be used, because the call could then exceed the limit. */
  readonly untilMs: number
}

/**
 * Creates tokens that are reserved among all instances, a few at a time and only while calls wait. A slot that is not used in time is lost.
 * While `shared` returns no slots, or no other instance is alive, this instance limits its own calls. After `waitMs` has returned
 * `undefined`, `onKnown` is called once the time is known.
 */
function createReservedSlots(
  own: CallLimit,
  clock: Clock,
  shared: () => RateSlots | undefined,
  onKnown: () => void,
): CallTokens {
  const bucket = createTokenBucket(own, clock)
  const withSlack = ({ calls, windowMs }: CallLimit): CallLimit => ({ calls, windowMs: windowMs + ANSWER_MS })
  let limit = withSlack(own)
  let reserved: Reserved[] = []
  let isReserving = false
  /**
   * The value that `aloneSinceMs` had at a reservation after a whole window without other instances. While `aloneSinceMs` returns the same
   * value, the instance uses its own tokens.
   */
  let ownSinceMs: number | undefined
  const reserve = (slots: RateSlots, wanted: number): void => {
    if (isReserving) return
    isReserving = true
    const askedMs = clock.nowMs()
    const aloneSinceMs = slots.aloneSinceMs() ?? Infinity
    const done = (waits: readonly number[] | undefined): void => {
      isReserving = false
      if (waits !== undefined && askedMs - aloneSinceMs >= limit.windowMs) ownSinceMs = aloneSinceMs
      const nowMs = clock.nowMs()
      const slackMs = Math.max(JITTER_MS, JITTER_MS + ANSWER_MS - (nowMs - askedMs))
      for (const waitMs of waits ?? [bucket.waitMs(1) ?? 0])
        reserved.push({ atMs: nowMs + waitMs, untilMs: nowMs + waitMs + slackMs })
      onKnown()
    }
    slots.reserve(limit, Math.min(wanted, Math.ceil(limit.calls / PARTS))).then(done, () => done(undefined))
  }
  return {
    waitMs: (wanted) => {
      const slots = shared()
      if (slots === undefined) return bucket.waitMs(wanted)
      const nowMs = clock.nowMs()
      reserved = reserved.filter(({ untilMs }) => untilMs >= nowMs)
      const [first] = reserved
      if (first !== undefined) return Math.max(0, first.atMs - nowMs)
      if (ownSinceMs !== undefined && ownSinceMs === slots.aloneSinceMs()) return bucket.waitMs(wanted)
      reserve(slots, wanted)
      return undefined
    },
    take: () => {
      reserved.shift()
      bucket.take()
    },
    isIdle: () => !isReserving && bucket.isIdle(),
    setLimit: (changed) => {
      limit = withSlack(changed)
      bucket.setLimit(changed)
    },
  }
}
