import type { Clock } from '../clock.ts'
import { AdapterError } from '../errors.ts'
import type { CallPriority, QueueKey } from './fair-queue.ts'
import type { RateLimit } from './rate-limit.ts'

/** The upstream calls of one client request, which share one time budget. */
export interface CallBudget {
  /**
   * Resolves when the next call may be sent, with the time in milliseconds that the call waited. Throws `ADP_OVERLOADED` if too many calls
   * are waiting, `ADP_BUDGET_EXCEEDED` if the call could be sent only after the deadline, and the reason of the signal if the client has
   * disconnected. In all these cases nothing was sent.
   */
  take(): Promise<number>
  /**
   * Delays the next call by `ms`, because the service asked for a pause. If `wholeKey` is true (after a 429) and there is a rate limit,
   * pauses all calls with the subscription key instead, for at most `budgetMs`, and resolves at once. The next `take` then waits. Resolves
   * to false at once if the pause would end after the deadline or the client has disconnected.
   */
  pause(ms: number, wholeKey: boolean): Promise<boolean>
  leftMs(): number
  /** Returns the total time in milliseconds that the calls have waited in the queue so far. */
  queuedMs(): number
}

interface CallBudgetOptions {
  /** The rate limit of the calls, or `undefined` if only the deadline limits the calls. */
  readonly rateLimit: RateLimit | undefined
  readonly queueKey: QueueKey
  readonly priority: CallPriority
  readonly budgetMs: number
  readonly clock: Clock
  /** Returns a signal that aborts when the client disconnects. Called only for a rate-limited call or a pause. */
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
      // Limits the pause, so that an unusual `Retry-After` cannot block a partner for hours. If the limit is too short, the next call gets
      // a 429 again.
      if (wholeKey) rateLimit?.pauseFor(Math.min(ms, budgetMs))
      const gone = signal()
      if (ms >= leftMs() || gone.aborted) return false
      if (wholeKey && rateLimit !== undefined) return true
      await new Promise<void>((resolve) => {
        const end = (): void => {
          cancel()
          gone.removeEventListener('abort', end)
          resolve()
        }
        const cancel = clock.after(ms, end)
        gone.addEventListener('abort', end)
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
    'The time for this request ran out before the next call to the service could be sent. That call was not sent. Try again later.',
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

/** The waits that the service itself recommends: 2 s, then 4 s, doubling up to about an hour (service-facts 9). */
const FIRST_WAIT_MS = 2_000
const LONGEST_WAIT_MS = 3_600_000
/** The waits in milliseconds before new attempts to connect to a service that may be restarting. After the last attempt, the call fails. */
const RECONNECT_MS: readonly number[] = [250, 1_000]

/**
 * Returns the wait in milliseconds before the retry of a call that changed nothing, or `undefined` if the call must not be retried. Calls
 * are retried only for the reasons `notConnected`, `throttled` (429) and `unavailable` (503, 408). `attempt` counts from 0. After a 429,
 * 503 or 408, the first wait is the time that the service names, or 2 s. Later waits double, and are no shorter than the named time.
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
 * Returns the wait in milliseconds that the upstream asks for, or `undefined` if it asks for no wait. Reads the header `Retry-After`, which
 * has seconds or an HTTP date (RFC 9110 10.2.3), or otherwise the text `try again in N seconds` of the gateway (service-facts 9). `nowMs`
 * is the current time to which a date is compared.
 */
export function readRetryAfter(header: string | undefined, body: string, nowMs: number): number | undefined {
  const text = header?.trim() ?? /try again in (\d{1,6}) seconds/i.exec(body)?.[1]
  if (text === undefined || text === '') return undefined
  if (/^\d{1,6}$/.test(text)) return Number(text) * 1000
  const date = Date.parse(text)
  return Number.isNaN(date) ? undefined : Math.max(0, date - nowMs)
}
