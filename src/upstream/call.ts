import type { IncomingHttpHeaders } from 'node:http'

import { errors } from 'undici'

import type { Clock } from '../clock.ts'
import { AdapterError } from '../errors.ts'
import { Pieces } from '../http/pieces.ts'
import { overloaded } from './call-budget.ts'
import type { ConnectionUser } from './connections.ts'
import { type ReplyHead, StreamCall } from './stream-call.ts'

/** How a call ended. */
export interface CallEnd {
  /** Why there is no whole reply; undefined: there is one. */
  readonly failure: Error | undefined
  /** Whether the request left: one that left may have been applied. */
  readonly sent: boolean
  /** Of the final status line; 0 where none arrived. */
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** The body as far as it arrived. */
  readonly body: Pieces
}

export interface CallOptions {
  readonly clock: Clock
  /** Time for the whole call, the wait for a connection and the last byte of the reply included, ms. */
  readonly timeoutMs: number
  /** A larger reply ends the call with undici's `ResponseExceededMaxSizeError`. */
  readonly maxBytes: number
  /** Ends the call with the signal's reason. */
  readonly signal?: AbortSignal | undefined
  /** True: the signal ends the call only as long as it has not left. Default false. */
  readonly finishesOnceSent?: boolean
  /** Called in the turn of the event loop in which the request is written: where it throws, nothing is sent, and that error is the failure. */
  readonly beforeSend?: (() => void) | undefined
  /** Called once for a call that left: with its status, or undefined where none arrived, and the time until then. */
  readonly onAnswered?: ((status: number | undefined, durationMs: number) => void) | undefined
}

/**
 * Sends one request and reads its reply whole. Never rejects. The failure is undici's error, the signal's reason, that of
 * `beforeSend`, `ADP_OVERLOADED` where no connection became free, or `ADP_BUDGET_EXCEEDED` after `timeoutMs`. Not undici's
 * `request`: time and bytes are bounded absolutely, and chunks of a few bytes cost no more memory than large ones.
 */
export function sendCall(dispatch: (user: ConnectionUser) => void, options: CallOptions): Promise<CallEnd> {
  const { clock, maxBytes, signal, finishesOnceSent = false, beforeSend, onAnswered } = options
  const timeoutMs = Math.max(0, options.timeoutMs)
  return new Promise((resolve) => {
    const body = new Pieces()
    let head: ReplyHead | undefined
    const end = (failure: Error | undefined, sent: boolean): void => {
      cancelTimer()
      signal?.removeEventListener('abort', onAbort)
      resolve({ failure, sent, status: head?.status ?? 0, headers: head?.headers ?? {}, body })
    }
    const call = new StreamCall(
      {
        beforeSend: () => beforeSend?.(),
        onHead: (received) => {
          head = received
        },
        onData: (chunk) => {
          if (body.size + chunk.length > maxBytes) call.abort(new errors.ResponseExceededMaxSizeError())
          else body.add(chunk)
          return true
        },
        onEnd: () => end(undefined, true),
        onFailure: end,
      },
      { headersMs: timeoutMs, clock, onAnswered },
    )
    const onAbort = (): void => {
      if (finishesOnceSent && call.isSent()) return
      const reason: unknown = signal?.reason
      call.abort(reason instanceof Error ? reason : new errors.RequestAbortedError())
    }
    const cancelTimer = clock.after(timeoutMs, () => {
      // It has this callback once it has a connection.
      call.abort(call.onDone === undefined ? overloaded('connection') : overdue())
    })
    signal?.addEventListener('abort', onAbort)
    if (signal?.aborted === true) onAbort()
    dispatch(call)
  })
}

const overdue = (): AdapterError =>
  new AdapterError('ADP_BUDGET_EXCEEDED', 'The time for the call ended before its reply was whole.')
