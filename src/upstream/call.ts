import type { IncomingHttpHeaders } from 'node:http'

import { type Dispatcher, errors } from 'undici'

import type { Clock } from '../clock.ts'
import { AdapterError } from '../errors.ts'
import { Pieces } from '../http/pieces.ts'
import { overloaded } from './call-budget.ts'
import type { ConnectionUser } from './connections.ts'

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
 * `beforeSend`, `ADP_OVERLOADED` where no connection became free, or `ADP_BUDGET_EXCEEDED` after `timeoutMs`.
 */
export function sendCall(dispatch: (user: ConnectionUser) => void, options: CallOptions): Promise<CallEnd> {
  return new Promise((resolve) => {
    dispatch(new Call(options, resolve))
  })
}

/**
 * Follows one request through undici's dispatcher. Not `Pool.request`: the dispatcher shows whether the request left, time and
 * bytes are bounded absolutely, and chunks of a few bytes cost no more memory than large ones.
 */
class Call implements ConnectionUser {
  onDone: ((replied: boolean) => void) | undefined
  private readonly options: CallOptions
  private readonly resolve: (end: CallEnd) => void
  private readonly cancelTimer: () => void
  private readonly body = new Pieces()
  private controller: Dispatcher.DispatchController | undefined
  private startedMs = 0
  private status = 0
  private headers: IncomingHttpHeaders = {}
  private done = false

  constructor(options: CallOptions, resolve: (end: CallEnd) => void) {
    this.options = options
    this.resolve = resolve
    const { clock, timeoutMs, signal } = options
    this.cancelTimer = clock.after(Math.max(0, timeoutMs), () => {
      this.stop(this.onDone === undefined ? overloaded('connection') : overdue())
    })
    signal?.addEventListener('abort', this.onAbort)
    if (signal?.aborted === true) this.onAbort()
  }

  isDone(): boolean {
    return this.done
  }

  onRefused(): void {
    this.end(overloaded('connection'))
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    // It ended while its connection was being made. Thrown, because an abort would close the connection.
    if (this.done) throw overdue()
    this.options.beforeSend?.()
    this.controller = controller
    this.startedMs = this.options.clock.nowMs()
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: IncomingHttpHeaders,
  ): void {
    if (status < 200) return
    this.status = status
    this.headers = headers
    this.onAnswered(status)
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.body.size + chunk.length > this.options.maxBytes)
      this.stop(new errors.ResponseExceededMaxSizeError())
    else this.body.add(chunk)
  }

  onResponseEnd(): void {
    this.end(undefined, true)
  }

  onResponseError(_controller: Dispatcher.DispatchController | undefined, error: Error): void {
    this.end(error)
  }

  private readonly onAbort = (): void => {
    const { signal, finishesOnceSent = false } = this.options
    if (finishesOnceSent && this.controller !== undefined) return
    const reason: unknown = signal?.reason
    this.stop(reason instanceof Error ? reason : new errors.RequestAbortedError())
  }

  private stop(failure: Error): void {
    this.end(failure)
    this.controller?.abort(failure)
  }

  private onAnswered(status: number | undefined): void {
    this.options.onAnswered?.(status, this.options.clock.nowMs() - this.startedMs)
  }

  private end(failure: Error | undefined, replied = false): void {
    if (this.done) return
    this.done = true
    this.cancelTimer()
    this.options.signal?.removeEventListener('abort', this.onAbort)
    const { status, headers, body } = this
    const sent = this.controller !== undefined
    if (sent && status === 0) this.onAnswered(undefined)
    this.onDone?.(replied)
    this.resolve({ failure, sent, status, headers, body })
  }
}

const overdue = (): AdapterError =>
  new AdapterError('ADP_BUDGET_EXCEEDED', 'The time for the call ended before its reply was whole.')
