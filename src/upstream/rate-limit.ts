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

/** Whether a call may leave; refused, nothing must be sent. */
export type Admission =
  | { readonly admitted: true; readonly waitedMs: number }
  | { readonly admitted: false; readonly waitedMs: number; readonly reason: Refusal }

/** Called with the decision on every call that asked to leave. */
type OnAdmission = (priority: CallPriority, admission: Admission) => void

interface RateLimitOptions {
  /** Calls that may leave in any second; a fraction means one call in more than a second. */
  readonly callsPerSecond: number
  readonly clock: Clock
  /** Calls that may wait at the same time, divided between owners; more are turned away. Default 1000. */
  readonly maxWaiting?: number
  /** Called with the decision on every call. */
  readonly onAdmission?: OnAdmission | undefined
  /**
   * Shared with other instances that call with the same key: the limit then holds for all of them together. Until a client of the key is
   * accepted, each instance limits its own calls, so that nothing is stored for a key that anybody made up.
   */
  readonly slots?: RateSlots | undefined
  /** False for a key that a client shows: its slots are shared once a client of the key is accepted. Default true. */
  readonly isConfigured?: boolean
}

/**
 * The rate limit of one subscription key (service-facts 9). Every caller of the upstream acquires first:
 *
 * ```ts
 * const { admitted } = await rateLimit.acquire('read', budgetMs, queueKey)
 * if (!admitted) throw new AdapterError('ADP_OVERLOADED', …) // 503: nothing was sent
 * const reply = await pool.request(…)
 * if (reply.statusCode === 429) rateLimit.pauseFor(waitMs) // then acquire again, or give up
 * ```
 *
 * One `acquire` is one request on the wire: a page, a record, or a whole `$batch`. It is never released.
 */
export interface RateLimit {
  /**
   * Resolves when the call may leave, or when it is clear that it may not. Never rejects. Calls leave by priority; within one
   * priority partners take turns, within a partner its owners, and an owner keeps its order. `waitMs` is the longest wait; `signal`
   * gives the place in the line back.
   */
  acquire(
    priority: CallPriority,
    waitMs: number,
    queueKey?: QueueKey,
    signal?: AbortSignal,
  ): Promise<Admission>
  /** Pauses all calls for `ms`, because the upstream answered 429. Never shortens an earlier pause. */
  pauseFor(ms: number): void
  /**
   * Time since the upstream last answered 429, ms, or since the pause of another instance ended: negative while that lasts, Infinity without
   * one. Undefined: the store that the instances share cannot be reached. What others do is known within a second.
   */
  sincePauseMs(): Promise<number | undefined>
  /** Changes the rate; calls that wait and calls that left keep their places. */
  setRate(callsPerSecond: number): void
  /** How many calls of this kind wait. */
  waiting(priority: CallPriority): number
  /** True when nothing waits and nothing left within the window: it need not be kept. */
  isIdle(): boolean
}

/** How old the answer about pauses of other instances may be. */
const KNOWN_MS = 1_000

/** Creates a rate limit: a queue of calls and the tokens that let them leave, of this instance or reserved among all. */
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
  /** The same of all instances, and when the store was asked for it. */
  let shared = { pauseMs: -Infinity, askedMs: -Infinity }
  let cancelWake: (() => void) | undefined
  /** Undefined: `serve` is called when it is known. */
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
        const end = (reason?: Refusal): void => {
          const waitedMs = clock.nowMs() - sinceMs
          const admission: Admission =
            reason === undefined ? { admitted: true, waitedMs } : { admitted: false, waitedMs, reason }
          onAdmission?.(priority, admission)
          resolve(admission)
        }
        if (signal?.aborted === true) {
          end('gone')
          return
        }
        queue.enter({
          queueKey,
          priority,
          waitMs: longestMs,
          signal: signal && (() => signal),
          admit: () => end(),
          refuse: end,
        })
        if (queue.size > 0) serve()
      })
    },
    sincePauseMs: async () => {
      const askedMs = clock.nowMs()
      const others = slots()
      if (others !== undefined && askedMs - shared.askedMs >= KNOWN_MS) {
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

/** The rate limits of all subscription keys; partners with one key share its calls (service-facts 9). */
export interface RateLimits {
  /**
   * The limit of a key. Of several rates that are asked for, the lowest applies from then on. `isConfigured`, true by default: the key is none
   * that a client may have made up.
   */
  of(subscriptionKey: string, callsPerSecond: number, isConfigured?: boolean): RateLimit
  /** Lets the next requested rate of each key apply, whether it is lower or higher; sent and waiting calls still count. */
  forgetRates(): void
  /** How many calls of this kind wait, over all keys. */
  waiting(priority: CallPriority): number
}

/** Keys may come from clients: beyond this number idle ones are dropped. */
const MAX_KEPT = 1_000

/**
 * Creates the register; keys are kept as hashes. `onAdmission` is called for the calls of all keys; `slotsOf` gives the slots
 * that instances share, by the hash of the key.
 */
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
      if (known.size >= MAX_KEPT) dropIdle()
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
function toCallLimit(callsPerSecond: number): CallLimit {
  const calls = Math.max(1, Math.floor(callsPerSecond))
  return { calls, windowMs: (calls / callsPerSecond) * 1_000 + JITTER_MS }
}

/**
 * The tokens of this instance, each of which returns one window after it was taken. So no second ever sees more calls than
 * allowed, also when the upstream counts a sliding window, and a small batch leaves at once.
 */
function createTokenBucket(initial: CallLimit, clock: Clock): CallTokens {
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
 * is lost. While `shared` gives no slots, this instance limits its own calls. `onKnown` is called when a time that was asked for is known.
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
  let asking = false
  const ask = (slots: RateSlots, wanted: number): void => {
    if (asking) return
    asking = true
    const askedMs = clock.nowMs()
    const known = (waits: readonly number[] | undefined): void => {
      asking = false
      const nowMs = clock.nowMs()
      const slackMs = Math.max(JITTER_MS, JITTER_MS + ANSWER_MS - (nowMs - askedMs))
      for (const waitMs of waits ?? [bucket.waitMs(1) ?? 0])
        reserved.push({ atMs: nowMs + waitMs, untilMs: nowMs + waitMs + slackMs })
      onKnown()
    }
    slots.reserve(limit, Math.min(wanted, Math.ceil(limit.calls / SHARE))).then(known, () => known(undefined))
  }
  return {
    waitMs: (wanted) => {
      const slots = shared()
      if (slots === undefined) return bucket.waitMs(wanted)
      const nowMs = clock.nowMs()
      reserved = reserved.filter(({ untilMs }) => untilMs >= nowMs)
      const [first] = reserved
      if (first !== undefined) return Math.max(0, first.atMs - nowMs)
      ask(slots, wanted)
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
