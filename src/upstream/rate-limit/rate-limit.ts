import type { Clock } from '../../clock.ts'
import { holderOf, type QueueKey, soleQueue } from '../fairness/queue-key.ts'
import { createQuota } from '../fairness/quota.ts'
import { createReservedSlots, type RateSlots } from './rate-slots.ts'
import { createTokenBucket, toCallLimit } from './token-bucket.ts'
import { type CallPriority, createWaitingLine, type Waiter } from './waiting-line.ts'

/**
 * Whether a call may leave. `full`: too many of its owner, or of all, wait already. `deadline`: it would not have left in
 * time. `gone`: the caller has given up. In all three cases nothing must be sent.
 */
export type Admission =
  | { readonly admitted: true; readonly waitedMs: number }
  | { readonly admitted: false; readonly waitedMs: number; readonly reason: 'full' | 'deadline' | 'gone' }

/** Called with the decision on every call that asked to leave. */
export type OnAdmission = (priority: CallPriority, admission: Admission) => void

export interface RateLimitOptions {
  /** Calls that may leave in any second; a fraction means one call in more than a second. */
  readonly callsPerSecond: number
  readonly clock: Clock
  /** Calls that may wait at the same time, divided between owners; more are turned away. Default 1000. */
  readonly maxWaiting?: number
  /** Called with the decision on every call. */
  readonly onAdmission?: OnAdmission
  /** Shared with other instances that call with the same key: the limit then holds for all of them together. */
  readonly slots?: RateSlots
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
      : createReservedSlots(limit, clock, slots, () => pump())
  let pausedUntilMs = -Infinity
  let lastPauseMs = -Infinity
  /** The same of all instances, and when the store was asked for it. */
  let shared = { pauseMs: -Infinity, askedMs: -Infinity }
  let cancelWake: (() => void) | undefined
  const line = createWaitingLine()
  const places = createQuota(maxWaiting)

  /** Undefined: `pump` is called when it is known. */
  const waitMs = (): number | undefined => {
    const tokenMs = tokens.waitMs(Math.max(1, line.size()))
    return tokenMs === undefined ? undefined : Math.max(tokenMs, pausedUntilMs - clock.nowMs())
  }
  const pump = (): void => {
    cancelWake?.()
    cancelWake = undefined
    while (line.size() > 0) {
      const ms = waitMs()
      if (ms === undefined) return
      if (ms > 0) {
        cancelWake = clock.after(Math.ceil(ms), pump)
        return
      }
      tokens.take()
      line.shift()?.admit()
    }
  }
  return {
    acquire: (priority, deadlineMs, queueKey = soleQueue, signal) => {
      const sinceMs = clock.nowMs()
      const end = (admission: Admission): Admission => {
        onAdmission?.(priority, admission)
        return admission
      }
      const refuse = (reason: 'full' | 'deadline' | 'gone'): Admission =>
        end({ admitted: false, waitedMs: clock.nowMs() - sinceMs, reason })
      if (signal?.aborted === true) return Promise.resolve(refuse('gone'))
      if (line.size() === 0 && deadlineMs > sinceMs && (waitMs() ?? 1) <= 0) {
        tokens.take()
        return Promise.resolve(end({ admitted: true, waitedMs: 0 }))
      }
      const holder = holderOf(queueKey)
      if (!places.mayTake(holder)) return Promise.resolve(refuse('full'))
      return new Promise((resolve) => {
        const settle = (): void => {
          places.release(holder)
          cancelDeadline()
          signal?.removeEventListener('abort', onGone)
        }
        const waiter: Waiter = {
          priority,
          queueKey,
          admit: () => {
            settle()
            resolve(end({ admitted: true, waitedMs: clock.nowMs() - sinceMs }))
          },
        }
        const leave = (reason: 'deadline' | 'gone'): void => {
          line.remove(waiter)
          settle()
          resolve(refuse(reason))
        }
        const onGone = (): void => leave('gone')
        const cancelDeadline = clock.after(Math.max(0, deadlineMs - sinceMs), () => leave('deadline'))
        signal?.addEventListener('abort', onGone)
        places.take(holder)
        line.push(waiter)
        pump()
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
      pump()
    },
    setRate: (rate) => {
      tokens.setLimit(toCallLimit(rate))
      pump()
    },
    waiting: (priority) => line.sizeOf(priority),
    nowMs: () => clock.nowMs(),
    isIdle: () => line.size() === 0 && tokens.isIdle() && pausedUntilMs <= clock.nowMs(),
  }
}
