import type { IncomingHttpHeaders } from 'node:http'

import { errors } from 'undici'

import type { Clock } from '../clock.ts'
import { AdapterError } from '../errors.ts'
import { Pieces } from '../http/body.ts'
import { overloaded } from './call-budget.ts'
import type { ConnectionUser } from './connections.ts'
import { type ReplyHead, type ReplySink, StreamCall } from './stream-call.ts'

/** How a call ended. */
interface CallEnd {
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
  /** Time for the whole call, the wait for a connection and the last byte of the reply included, ms; asked as it begins. */
  readonly leftMs: () => number
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
 * `beforeSend`, `ADP_OVERLOADED` where no connection became free, or `ADP_BUDGET_EXCEEDED` once its time is over. Not
 * undici's `request`: time and bytes are bounded absolutely, and chunks of a few bytes cost no more memory than large ones.
 */
export function sendCall(dispatch: (user: ConnectionUser) => void, options: CallOptions): Promise<CallEnd> {
  return new Promise((resolve) => {
    dispatch(new WholeReply(options, resolve).call)
  })
}

/** Collects the reply of one call, within its time and size. */
class WholeReply implements ReplySink {
  readonly call: StreamCall
  private readonly options: CallOptions
  private readonly resolve: (end: CallEnd) => void
  private readonly cancelTimer: () => void
  private readonly body = new Pieces()
  private head: ReplyHead | undefined

  constructor(options: CallOptions, resolve: (end: CallEnd) => void) {
    const { clock, signal, onAnswered } = options
    this.options = options
    this.resolve = resolve
    const timeoutMs = Math.max(0, options.leftMs())
    this.call = new StreamCall(this, { headersMs: timeoutMs, clock, onAnswered })
    // It has this callback once it has a connection.
    this.cancelTimer = clock.after(timeoutMs, () =>
      this.call.abort(this.call.onDone === undefined ? overloaded('connection') : overdue()),
    )
    signal?.addEventListener('abort', this.onAbort)
    if (signal?.aborted === true) this.onAbort()
  }

  beforeSend(): void {
    this.options.beforeSend?.()
  }

  onHead(head: ReplyHead): void {
    this.head = head
  }

  onData(chunk: Buffer): boolean {
    if (this.body.size + chunk.length > this.options.maxBytes)
      this.call.abort(new errors.ResponseExceededMaxSizeError())
    else this.body.add(chunk)
    return true
  }

  onEnd(): void {
    this.end(undefined, true)
  }

  onFailure(cause: Error, sent: boolean): void {
    this.end(cause, sent)
  }

  private readonly onAbort = (): void => {
    const { signal, finishesOnceSent = false } = this.options
    if (finishesOnceSent && this.call.isSent()) return
    const reason: unknown = signal?.reason
    this.call.abort(reason instanceof Error ? reason : new errors.RequestAbortedError())
  }

  private end(failure: Error | undefined, sent: boolean): void {
    this.cancelTimer()
    this.options.signal?.removeEventListener('abort', this.onAbort)
    const { head, body } = this
    this.resolve({ failure, sent, status: head?.status ?? 0, headers: head?.headers ?? {}, body })
  }
}

const overdue = (): AdapterError =>
  new AdapterError('ADP_BUDGET_EXCEEDED', 'The time for the call ended before its reply was whole.')
