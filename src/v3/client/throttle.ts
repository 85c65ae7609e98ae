import type { Clock } from './clock.ts'
import { type CallPriority, createWaitingLine, type Waiter } from './waiting-line.ts'

/**
 * Whether a call may leave. `full`: too many wait already. `deadline`: it would not have left in time. `gone`: whoever asked
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
  /** Calls that may wait at the same time; more are turned away. Default 1000. */
  readonly maxWaiting?: number
  /** Hears what became of every call that asked. */
  readonly onAdmission?: OnAdmission
}

/**
 * The pace of the calls with one subscription key (service-facts 9). Whoever calls the upstream asks first:
 *
 * ```ts
 * const { admitted } = await throttle.acquire('read', throttle.nowMs() + budgetMs, partner.id)
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
   * priority the shares (partners) take turns, and each share keeps its order. `deadlineMs` is a time of `nowMs()`; `signal`
   * gives the place in the line back.
   */
  acquire(
    priority: CallPriority,
    deadlineMs: number,
    share?: string,
    signal?: AbortSignal,
  ): Promise<Admission>
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

/** A window is this much longer than the upstream's, since calls do not all take the same time to get there. */
const JITTER_MS = 50

/**
 * Creates a throttle: a bucket of `callsPerSecond` tokens, each of which comes back one window after it was taken. So no
 * second ever sees more calls than allowed, also when the upstream counts a sliding window, and a small batch leaves at once.
 */
export function createThrottle(options: ThrottleOptions): Throttle {
  const { callsPerSecond, clock, maxWaiting = 1_000, onAdmission } = options
  const tokens = Math.max(1, Math.floor(callsPerSecond))
  const windowMs = (tokens / callsPerSecond) * 1_000 + JITTER_MS
  /** When each token may be taken again; `next` is the one that comes back first. */
  const backMs = new Array<number>(tokens).fill(-Infinity)
  let next = 0
  let heldUntilMs = -Infinity
  let cancelWake: (() => void) | undefined
  const line = createWaitingLine()

  const freeAtMs = (): number => Math.max(backMs[next] ?? 0, heldUntilMs)
  const take = (nowMs: number): void => {
    backMs[next] = nowMs + windowMs
    next = (next + 1) % tokens
  }
  const pump = (): void => {
    cancelWake?.()
    cancelWake = undefined
    while (line.size() > 0) {
      const nowMs = clock.nowMs()
      const waitMs = freeAtMs() - nowMs
      if (waitMs > 0) {
        cancelWake = clock.after(Math.ceil(waitMs), pump)
        return
      }
      take(nowMs)
      line.shift()?.admit()
    }
  }
  return {
    acquire: (priority, deadlineMs, share = '', signal) => {
      const sinceMs = clock.nowMs()
      const end = (admission: Admission): Admission => {
        onAdmission?.(priority, admission)
        return admission
      }
      const refuse = (reason: 'full' | 'deadline' | 'gone'): Admission =>
        end({ admitted: false, waitedMs: clock.nowMs() - sinceMs, reason })
      if (signal?.aborted === true) return Promise.resolve(refuse('gone'))
      if (line.size() === 0 && freeAtMs() <= sinceMs && deadlineMs > sinceMs) {
        take(sinceMs)
        return Promise.resolve(end({ admitted: true, waitedMs: 0 }))
      }
      if (line.size() >= maxWaiting) return Promise.resolve(refuse('full'))
      return new Promise((resolve) => {
        const settle = (): void => {
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
        line.push(waiter)
        pump()
      })
    },
    penalise: (ms) => {
      heldUntilMs = Math.max(heldUntilMs, clock.nowMs() + ms)
      pump()
    },
    estimateMs: (calls) => {
      if (calls === 0) return 0
      const ahead = line.sizeOf('write') + calls
      const rounds = Math.floor((ahead - 1) / tokens)
      const first = backMs[(next + ((ahead - 1) % tokens)) % tokens] ?? 0
      return Math.max(0, first - clock.nowMs(), heldUntilMs - clock.nowMs()) + rounds * windowMs
    },
    waiting: (priority) => line.sizeOf(priority),
    nowMs: () => clock.nowMs(),
    isIdle: () => line.size() === 0 && Math.max(...backMs, heldUntilMs) <= clock.nowMs(),
  }
}
