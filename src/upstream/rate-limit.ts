import { hash } from 'node:crypto'

import type { Clock } from '../clock.ts'
import { type CallPriority, FairQueue, type Refusal } from './fair-queue.ts'
import { type QueueKey, soleQueue } from './quota.ts'
import { createReservedSlots, createTokenBucket, type RateSlots, toCallLimit } from './token-bucket.ts'

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
  /** Shared with other instances that call with the same key: the limit then holds for all of them together. */
  readonly slots?: RateSlots | undefined
}

/**
 * The rate limit of one subscription key (service-facts 9). Every caller of the upstream acquires first:
 *
 * ```ts
 * const { admitted } = await rateLimit.acquire('read', rateLimit.nowMs() + budgetMs, queueKey)
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
   * priority partners take turns, within a partner its owners, and an owner keeps its order. `deadlineMs` is a time of `nowMs()`; `signal`
   * gives the place in the line back.
   */
  acquire(
    priority: CallPriority,
    deadlineMs: number,
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
  /** The clock of `deadlineMs`. */
  nowMs(): number
  /** True when nothing waits and nothing left within the window: it need not be kept. */
  isIdle(): boolean
}

/** How old the answer about pauses of other instances may be. */
const KNOWN_MS = 1_000

/** Creates a rate limit: a queue of calls and the tokens that let them leave, of this instance or reserved among all. */
export function createRateLimit(options: RateLimitOptions): RateLimit {
  const { callsPerSecond, clock, maxWaiting = 1_000, onAdmission, slots } = options
  const limit = toCallLimit(callsPerSecond)
  const tokens =
    slots === undefined
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
    { mayTake: () => (waitMs() ?? 1) <= 0, take: () => tokens.take() },
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
    acquire: (priority, deadlineMs, queueKey = soleQueue, signal) => {
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
        queue.enter(
          { queueKey, priority, waitMs: deadlineMs - sinceMs, signal: signal && (() => signal) },
          () => end(),
          end,
        )
        if (queue.size > 0) serve()
      })
    },
    sincePauseMs: async () => {
      const askedMs = clock.nowMs()
      if (slots !== undefined && askedMs - shared.askedMs >= KNOWN_MS) {
        const sinceMs = await slots.sincePauseMs()
        if (sinceMs === undefined) return undefined
        shared = { pauseMs: askedMs - sinceMs, askedMs }
      }
      return clock.nowMs() - Math.max(lastPauseMs, shared.pauseMs)
    },
    pauseFor: (ms) => {
      lastPauseMs = clock.nowMs()
      pausedUntilMs = Math.max(pausedUntilMs, clock.nowMs() + ms)
      slots?.pauseFor(ms)
      serve()
    },
    setRate: (rate) => {
      tokens.setLimit(toCallLimit(rate))
      serve()
    },
    waiting: (priority) => queue.sizeOf(priority),
    nowMs: () => clock.nowMs(),
    isIdle: () => queue.size === 0 && tokens.isIdle() && pausedUntilMs <= clock.nowMs(),
  }
}

/** The rate limits of all subscription keys; partners with one key share its calls (service-facts 9). */
export interface RateLimits {
  /** The limit of a key. Of several rates that are asked for, the lowest applies from then on. */
  of(subscriptionKey: string, callsPerSecond: number): RateLimit
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
    of: (subscriptionKey, callsPerSecond) => {
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
      const limit = createRateLimit({ callsPerSecond, clock, onAdmission, slots: slotsOf?.(key) })
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
