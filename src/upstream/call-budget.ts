import type { Clock } from '../clock.ts'
import { AdapterError } from '../errors.ts'
import type { CallPriority, QueueKey } from './fair-queue.ts'
import type { RateLimit } from './rate-limit.ts'

/** The upstream calls that one request of a client may make within its time. */
export interface CallBudget {
  /**
   * Resolves when the next call may leave, with the time that it waited, ms. Errors: `ADP_OVERLOADED` when too many wait
   * already, `ADP_BUDGET_EXCEEDED` when it could only leave after the deadline: nothing was sent. Rejects with the signal's reason once the
   * client has gone.
   */
  take(): Promise<number>
  /**
   * Waits before the next call because the service asked to. With `wholeKey` (429) all calls with the key are paused. False, at
   * once, when the wait would end after the deadline; the key is then paused for the time of one budget.
   */
  pause(ms: number, wholeKey: boolean): Promise<boolean>
  /** The time that is left of the budget, ms. */
  leftMs(): number
  /** The sum of the times that the calls so far stood in the queue, ms. */
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
  return {
    take: async () => {
      if (leftMs() <= 0) throw overBudget()
      if (rateLimit === undefined) return 0
      const gone = signal()
      gone.throwIfAborted()
      const admission = await rateLimit.acquire(priority, leftMs(), queueKey, gone)
      queuedMs += admission.waitedMs
      if (admission.admitted) return admission.waitedMs
      gone.throwIfAborted()
      throw admission.reason === 'full' ? overloaded('turn') : overBudget()
    },
    pause: async (ms, wholeKey) => {
      // Not longer: an odd Retry-After must not silence a partner for hours; the next call would be given it again.
      if (wholeKey) rateLimit?.pauseFor(Math.min(ms, budgetMs))
      if (ms >= leftMs() || signal().aborted) return false
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

/** The service's own schedule: 2 s, 4 s, doubling up to about an hour (service-facts 9). */
const FIRST_WAIT_MS = 2_000
const LONGEST_WAIT_MS = 3_600_000
/** A service that takes no connection may be at a restart; when it is not back soon, the client gets an error. */
const RECONNECT_MS: readonly number[] = [250, 1_000]

/**
 * How long to wait before a call that changed nothing is repeated; undefined: it is not, since another try would not help. Only
 * after `notConnected`, `throttled` (429), and `unavailable` (503) that names a time. `attempt` counts from 0. After a 429 the
 * first wait is the one that the service names, later ones follow its schedule.
 */
export function retryWaitMs(
  { reason, retryAfterMs: toldMs }: { readonly reason: string; readonly retryAfterMs: number | undefined },
  attempt: number,
): number | undefined {
  const scheduledMs = Math.min(FIRST_WAIT_MS * 2 ** attempt, LONGEST_WAIT_MS)
  switch (reason) {
    case 'notConnected':
      return RECONNECT_MS[attempt]
    case 'throttled':
      return attempt === 0 ? (toldMs ?? scheduledMs) : Math.max(toldMs ?? 0, scheduledMs)
    case 'unavailable':
      if (toldMs === undefined) return undefined
      return attempt === 0 ? toldMs : Math.max(toldMs, scheduledMs)
    default:
      return undefined
  }
}

/**
 * The wait that the upstream asks for, in ms: from the header `Retry-After`, seconds or an HTTP date (RFC 9110 10.2.3), else
 * from the gateway's text (service-facts 9). `nowMs` is the time that a date is compared with.
 */
export function readRetryAfter(header: string | undefined, body: string, nowMs: number): number | undefined {
  const text = header?.trim() ?? /try again in (\d{1,6}) seconds/i.exec(body)?.[1]
  if (text === undefined || text === '') return undefined
  if (/^\d{1,6}$/.test(text)) return Number(text) * 1000
  const date = Date.parse(text)
  return Number.isNaN(date) ? undefined : Math.max(0, date - nowMs)
}
