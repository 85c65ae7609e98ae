import type { Clock } from '../clock.ts'
import { AdapterError } from '../errors.ts'
import type { CallPriority, QueueKey } from './fair-queue.ts'
import type { RateLimit } from './rate-limit.ts'

/** The upstream calls that one client request may make within its time. */
export interface CallBudget {
  /**
   * Resolves when the next call may be sent, with the time in milliseconds that it waited. Throws `ADP_OVERLOADED` if too many calls wait
   * already, `ADP_BUDGET_EXCEEDED` if the call could only be sent after the deadline, and the signal's reason if the client has
   * disconnected. Nothing was sent in these cases.
   */
  take(): Promise<number>
  /**
   * Waits `ms` before the next call because the service asked for it. With `wholeKey` (429), pauses all calls with the key. Returns false
   * at once if the wait would end after the deadline; the key is then paused for the time of one budget.
   */
  pause(ms: number, wholeKey: boolean): Promise<boolean>
  leftMs(): number
  /** Returns the total time in milliseconds that the calls so far spent in the queue. */
  queuedMs(): number
}

interface CallBudgetOptions {
  /** If `undefined`, only the deadline limits the calls. */
  readonly rateLimit: RateLimit | undefined
  readonly queueKey: QueueKey
  readonly priority: CallPriority
  readonly budgetMs: number
  readonly clock: Clock
  /** Returns a signal that aborts when the client disconnects. Called if a call has to wait. */
  readonly signal: () => AbortSignal
}

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
      // The pause is bounded, so that an odd `Retry-After` cannot silence a partner for hours. The next call would be told to wait again.
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
    'The rate limit of the service did not allow the call in time. Nothing was sent. Try again later.',
  )
}

export function overloaded(missing: 'turn' | 'connection'): AdapterError {
  return new AdapterError(
    'ADP_OVERLOADED',
    missing === 'turn'
      ? 'Too many calls are waiting for the service. Nothing was sent. Try again later.'
      : 'No connection to the service became free for this client. Nothing was sent. Try again later.',
  )
}

/** The service's own schedule: 2 s, 4 s, doubling up to about an hour (service-facts 9). */
const FIRST_WAIT_MS = 2_000
const LONGEST_WAIT_MS = 3_600_000
/** Waits in milliseconds before new attempts to connect to a service that may be restarting. Then the client gets an error. */
const RECONNECT_MS: readonly number[] = [250, 1_000]

/**
 * Returns the wait in milliseconds before a call that changed nothing is repeated, or `undefined` if another attempt would not help. Only
 * `notConnected`, `throttled` (429) and `unavailable` (503, 408) are repeated. `attempt` counts from 0. After a 429 or 503 the first wait
 * is the time that the service names; later waits follow its schedule.
 */
export function retryWaitMs(
  { reason, retryAfterMs: askedMs }: { readonly reason: string; readonly retryAfterMs: number | undefined },
  attempt: number,
): number | undefined {
  const scheduledMs = Math.min(FIRST_WAIT_MS * 2 ** attempt, LONGEST_WAIT_MS)
  switch (reason) {
    case 'notConnected':
      return RECONNECT_MS[attempt]
    case 'throttled':
    case 'unavailable':
      return attempt === 0 ? (askedMs ?? scheduledMs) : Math.max(askedMs ?? 0, scheduledMs)
    default:
      return undefined
  }
}

/**
 * Returns the wait in milliseconds that the upstream asks for, or `undefined` if it asks for none. Reads the header `Retry-After`, seconds
 * or an HTTP date (RFC 9110 10.2.3), or else the gateway's text (service-facts 9). A date is compared with `nowMs`.
 */
export function readRetryAfter(header: string | undefined, body: string, nowMs: number): number | undefined {
  const text = header?.trim() ?? /try again in (\d{1,6}) seconds/i.exec(body)?.[1]
  if (text === undefined || text === '') return undefined
  if (/^\d{1,6}$/.test(text)) return Number(text) * 1000
  const date = Date.parse(text)
  return Number.isNaN(date) ? undefined : Math.max(0, date - nowMs)
}
