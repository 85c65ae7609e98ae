import type { Clock } from '../clock.ts'
import { AdapterError } from '../errors.ts'
import type { CallPriority } from './fair-queue.ts'
import type { QueueKey } from './quota.ts'
import type { RateLimit } from './rate-limit.ts'

/** The upstream calls that one request of a client may make, one after another, within its time. */
export interface CallBudget {
  /**
   * Resolves when the next call may leave; undefined: it may now. Errors: `ADP_OVERLOADED` when too many wait already, `ADP_BUDGET_EXCEEDED` when it
   * could only leave after the deadline: nothing was sent. Rejects with the signal's reason once the client has gone.
   */
  take(): Promise<void> | undefined
  /**
   * Waits before the next call because the service asked to. With `wholeKey` (429) all calls with the key are paused. False, at
   * once, when the wait would end after the deadline; the key is then paused for the time of one budget.
   */
  pause(ms: number, wholeKey: boolean): Promise<boolean>
  /** The time that is left of the budget, ms. */
  leftMs(): number
  /** The time that the calls so far stood in the queue, one after another, ms. */
  queuedMs(): number
}

interface CallBudgetOptions {
  /** Undefined: only the deadline counts. */
  readonly rateLimit: RateLimit | undefined
  /** The client that the calls are for. */
  readonly queueKey: QueueKey
  readonly priority: CallPriority
  /** Time for all calls of the request. */
  readonly budgetMs: number
  readonly clock: Clock
  /** A signal that aborts when the client has gone; called when a call has to wait. */
  readonly signal: () => AbortSignal
}

/** Opens the budget of one request, under the rate limit of its partner. */
export function openCallBudget({
  rateLimit,
  queueKey,
  priority,
  budgetMs,
  clock,
  signal,
}: CallBudgetOptions): CallBudget {
  const deadlineMs = clock.nowMs() + budgetMs
  const leftMs = (): number => deadlineMs - clock.nowMs()
  let queuedMs = 0
  const acquire = async (limit: RateLimit): Promise<void> => {
    const gone = signal()
    gone.throwIfAborted()
    const admission = await limit.acquire(priority, limit.nowMs() + leftMs(), queueKey, gone)
    queuedMs += admission.waitedMs
    if (admission.admitted) return
    gone.throwIfAborted()
    throw admission.reason === 'full' ? overloaded('turn') : overBudget()
  }
  return {
    take: () => {
      if (leftMs() <= 0) return Promise.reject(overBudget())
      return rateLimit === undefined ? undefined : acquire(rateLimit)
    },
    pause: async (ms, wholeKey) => {
      // Not longer: an odd Retry-After must not silence a partner for hours; the next call would be given it again.
      if (wholeKey) rateLimit?.pauseFor(Math.min(ms, budgetMs))
      if (ms >= leftMs()) return false
      if (wholeKey && rateLimit !== undefined) return true
      await new Promise<void>((resolve) => {
        const cancel = clock.after(ms, resolve)
        signal().addEventListener('abort', () => {
          cancel()
          resolve()
        })
      })
      return true
    },
    leftMs,
    queuedMs: () => Math.round(queuedMs),
  }
}

function overBudget(): AdapterError {
  return new AdapterError(
    'ADP_BUDGET_EXCEEDED',
    'The call could not be made in time at the rate that the service allows. Nothing was sent; try again later.',
  )
}

/** The error of a call that found no place in the queue for its turn at the rate, or no connection. */
export function overloaded(missing: 'turn' | 'connection'): AdapterError {
  return new AdapterError(
    'ADP_OVERLOADED',
    missing === 'turn'
      ? 'Too many calls wait for their turn. Nothing was sent; try again later.'
      : 'No connection to the service became free for this client. Nothing was sent; try again later.',
  )
}
