import type { Clock } from './clock.ts'
import { createQuota } from './shares/quota.ts'
import { holderOf, type Share, soleShare } from './shares/share.ts'
import { createLocalTurns, createSharedTurns, type SharedTurns, toTurnLimit } from './turns.ts'
import { type CallPriority, createWaitingLine, type Waiter } from './waiting-line.ts'

/**
 * Whether a call may leave. `full`: too many of its owner, or of all, wait already. `deadline`: it would not have left in time. `gone`: whoever asked
 * has given up. In all three cases nothing must be sent.
 */
export type Admission =
  | { readonly admitted: true; readonly waitedMs: number }
  | { readonly admitted: false; readonly waitedMs: number; readonly reason: 'full' | 'deadline' | 'gone' }

/** Hears what became of a call that asked for its turn. */
export type OnAdmission = (priority: CallPriority, admission: Admission) => void

export interface ThrottleOptions {
  /** Calls that may leave in any second; a fraction means one call in more than a second. */
  readonly callsPerSecond: number
  readonly clock: Clock
  /** Calls that may wait at the same time, divided between owners; more are turned away. Default 1000. */
  readonly maxWaiting?: number
  /** Hears what became of every call that asked. */
  readonly onAdmission?: OnAdmission
  /** Other instances call with the same key: the limit holds for all of them together. */
  readonly shared?: SharedTurns
}

/**
 * The pace of the calls with one subscription key (service-facts 9). Whoever calls the upstream asks first:
 *
 * ```ts
 * const { admitted } = await throttle.acquire('read', throttle.nowMs() + budgetMs, share)
 * if (!admitted) throw new AdapterError('ADP_OVERLOADED', …) // 503: nothing was sent
 * const reply = await pool.request(…)
 * if (reply.statusCode === 429) throttle.penalise(waitMs) // then acquire again, or give up
 * ```
 *
 * One `acquire` stands for one request on the wire: a page, a record, or a whole `$batch`. Nothing is given back.
 */
export interface Throttle {
  /**
   * Resolves when the call may leave, or when it is clear that it may not. Never rejects. Calls leave by priority; within one
   * priority partners take turns, within a partner its owners, and an owner keeps its order. `deadlineMs` is a time of `nowMs()`; `signal`
   * gives the place in the line back.
   */
  acquire(priority: CallPriority, deadlineMs: number, share?: Share, signal?: AbortSignal): Promise<Admission>
  /** Holds every call back for `ms`, because the upstream answered 429. Never shortens an earlier hold. */
  penalise(ms: number): void
  /** How long `calls` writes that came now would take to leave, with what waits before them. */
  estimateMs(calls: number): number
  /** How many calls of this kind wait. */
  waiting(priority: CallPriority): number
  /** The clock of `deadlineMs`. */
  nowMs(): number
  /** True when nothing waits and nothing left within the window: it can be forgotten. */
  isIdle(): boolean
}

/** Creates a throttle: a line of calls that wait, and the turns (`turns.ts`) at which they leave. */
export function createThrottle(options: ThrottleOptions): Throttle {
  const { callsPerSecond, clock, maxWaiting = 1_000, onAdmission, shared } = options
  const limit = toTurnLimit(callsPerSecond)
  const turns =
    shared === undefined
      ? createLocalTurns(limit, clock)
      : createSharedTurns(limit, clock, shared, () => pump())
  let heldUntilMs = -Infinity
  let cancelWake: (() => void) | undefined
  const line = createWaitingLine()
  const places = createQuota(maxWaiting)

  /** Undefined: `pump` is called when it is known. */
  const waitMs = (): number | undefined => {
    const turnMs = turns.waitMs(Math.max(1, line.size()))
    return turnMs === undefined ? undefined : Math.max(turnMs, heldUntilMs - clock.nowMs())
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
      turns.take()
      line.shift()?.admit()
    }
  }
  return {
    acquire: (priority, deadlineMs, share = soleShare, signal) => {
      const sinceMs = clock.nowMs()
      const end = (admission: Admission): Admission => {
        onAdmission?.(priority, admission)
        return admission
      }
      const refuse = (reason: 'full' | 'deadline' | 'gone'): Admission =>
        end({ admitted: false, waitedMs: clock.nowMs() - sinceMs, reason })
      if (signal?.aborted === true) return Promise.resolve(refuse('gone'))
      if (line.size() === 0 && deadlineMs > sinceMs && (waitMs() ?? 1) <= 0) {
        turns.take()
        return Promise.resolve(end({ admitted: true, waitedMs: 0 }))
      }
      const holder = holderOf(share)
      if (!places.mayTake(holder)) return Promise.resolve(refuse('full'))
      return new Promise((resolve) => {
        const settle = (): void => {
          places.release(holder)
          cancelDeadline()
          signal?.removeEventListener('abort', onGone)
        }
        const waiter: Waiter = {
          priority,
          share,
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
    penalise: (ms) => {
      heldUntilMs = Math.max(heldUntilMs, clock.nowMs() + ms)
      shared?.hold(ms)
      pump()
    },
    estimateMs: (calls) => {
      if (calls === 0) return 0
      return turns.aheadMs(line.sizeOf('write') + calls, heldUntilMs - clock.nowMs())
    },
    waiting: (priority) => line.sizeOf(priority),
    nowMs: () => clock.nowMs(),
    isIdle: () => line.size() === 0 && turns.isIdle() && heldUntilMs <= clock.nowMs(),
  }
}
