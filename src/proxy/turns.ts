import type { ServerResponse } from 'node:http'

import { AdapterError } from '../errors.ts'
import type { CallPriority, Clock, Pace, Share } from '../v3/index.ts'

/** The turns of the calls that one request of a client makes, one after another. */
export interface Turns {
  /**
   * Resolves when the next call may leave. Errors: `ADP_OVERLOADED` when too many wait already, `ADP_BUDGET_EXCEEDED` when the
   * turn would come after the budget: nothing was sent. Rejects with the signal's reason once the client has gone.
   */
  take(): Promise<void>
  /**
   * Waits before the next call because the service asked to. With `wholeKey` (429) it is the key's calls that wait, whoever
   * makes them. False, at once, when the wait would end after the budget; the key is held back for the budget then.
   */
  pause(ms: number, wholeKey: boolean): Promise<boolean>
  /** The time that is left of the budget, ms. */
  leftMs(): number
  /** The time that the calls so far stood in the queue, one after another, ms. */
  queuedMs(): number
}

export interface TurnOptions {
  /** Undefined: nothing holds the calls back, only the budget counts. */
  readonly pace: Pace | undefined
  /** Whose calls these are. */
  readonly share: Share
  readonly priority: CallPriority
  /** Time for all calls of the request. */
  readonly budgetMs: number
  readonly clock: Clock
  /** Aborts when the client has gone. */
  readonly signal: AbortSignal
}

/** Opens the turns of one request at the pace of its partner. */
export function openTurns({ pace, share, priority, budgetMs, clock, signal }: TurnOptions): Turns {
  const deadlineMs = clock.nowMs() + budgetMs
  const leftMs = (): number => deadlineMs - clock.nowMs()
  let queuedMs = 0
  return {
    take: async () => {
      signal.throwIfAborted()
      if (leftMs() <= 0) throw overBudget()
      if (pace === undefined) return
      const { throttle } = pace
      const admission = await throttle.acquire(priority, throttle.nowMs() + leftMs(), share, signal)
      queuedMs += admission.waitedMs
      if (admission.admitted) return
      signal.throwIfAborted()
      throw admission.reason === 'full' ? overloaded() : overBudget()
    },
    pause: async (ms, wholeKey) => {
      // Not longer: a strange Retry-After must not silence a partner for hours; the next call would hear it again.
      if (wholeKey) pace?.throttle.penalise(Math.min(ms, budgetMs))
      if (ms >= leftMs()) return false
      if (wholeKey && pace !== undefined) return true
      await new Promise<void>((resolve) => {
        const cancel = clock.after(ms, resolve)
        signal.addEventListener('abort', () => {
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

/** Aborts when the connection of the reply closes. */
export function untilGone(response: ServerResponse): AbortSignal {
  const gone = new AbortController()
  if (response.destroyed) gone.abort()
  else response.once('close', () => gone.abort())
  return gone.signal
}

function overBudget(): AdapterError {
  return new AdapterError(
    'ADP_BUDGET_EXCEEDED',
    'The call could not be made in time at the rate that the service allows. Nothing was sent; try again later.',
  )
}

function overloaded(): AdapterError {
  return new AdapterError(
    'ADP_OVERLOADED',
    'Too many calls wait for their turn. Nothing was sent; try again later.',
  )
}
