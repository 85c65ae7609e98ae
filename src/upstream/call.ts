import type { IncomingHttpHeaders } from 'node:http'

import { type Dispatcher, errors } from 'undici'

import type { Clock } from '../clock.ts'
import { AdapterError } from '../errors.ts'
import { Pieces } from '../http/body.ts'
import { overloaded } from './call-budget.ts'
import type { Connections, ConnectionUser, ConnectionWait } from './connections.ts'
import { ReplyFields } from './reply-fields.ts'

export interface ReplyHead {
  readonly status: number
  readonly reason: string
  readonly fields: ReplyFields
}

/** Receives a reply in pieces. The last call is either `onEnd` or `onFailure`. */
export interface ReplySink {
  /** Called immediately before the request is written. If it throws, nothing is sent, and the call fails with its error. */
  beforeSend(): void
  /** Receives the head of the reply. May throw to refuse the reply. The call then fails with this error. */
  onHead(head: ReplyHead): void
  /** Receives a piece of the body. Returns false to pause the reply until `StreamCall.resume` is called. */
  onData(chunk: Buffer): boolean
  onEnd(): void
  /** Called if the whole reply did not arrive. `sent` is true if a part of the request was written and may have been applied. */
  onFailure(cause: Error, sent: boolean): void
}

/**
 * Sends one request through undici's dispatcher and streams the reply to a sink. Ignores interim responses and trailers. undici's
 * `Pool.request` is not used, because only the dispatcher shows whether the request was sent (decision 005).
 */
export class StreamCall implements ConnectionUser {
  onDone: ((replied: boolean) => void) | undefined
  wasReset: (() => boolean) | undefined
  private readonly sink: ReplySink
  private readonly startTimer: ((expire: () => void) => () => void) | undefined
  private controller: Dispatcher.DispatchController | undefined
  private done = false
  private endsWithConnection = false
  private cancelInterim: (() => void) | undefined

  /** `startTimer` limits the time to the status line if interim responses keep arriving. By default, only the deadline limits this time. */
  constructor(sink: ReplySink, startTimer?: (expire: () => void) => () => void) {
    this.sink = sink
    this.startTimer = startTimer
  }

  isDone(): boolean {
    return this.done
  }

  isSent(): boolean {
    return this.controller !== undefined
  }

  abort(cause: Error): void {
    if (this.done) return
    const { controller } = this
    // `controller.abort` closes the connection, and calls `onResponseError` before it returns.
    if (controller === undefined) this.fail(cause)
    else controller.abort(cause)
  }

  resume(): void {
    if (!this.done) this.controller?.resume()
  }

  onRefused(): void {
    this.fail(overloaded('connection'))
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    // Stops a call that ended while its connection was being opened. Throwing leaves the connection open, and an abort would close it.
    if (this.done) throw new AdapterError('ADP_BUDGET_EXCEEDED', 'The call ended before it was sent.')
    this.sink.beforeSend()
    this.controller = controller
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    _headers: IncomingHttpHeaders,
    reason = '',
  ): void {
    if (status < 200) {
      // Each interim response restarts undici's timeout for the status line, so this call needs a timer of its own.
      this.cancelInterim ??= this.startTimer?.(() => this.abort(new errors.HeadersTimeoutError()))
      return
    }
    this.cancelInterim?.()
    const fields = new ReplyFields(controller.rawHeaders)
    this.endsWithConnection = ['content-length', 'transfer-encoding'].every(
      (name) => fields.all(name).length === 0,
    )
    this.sink.onHead({ status, reason, fields })
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (!this.sink.onData(chunk)) controller.pause()
  }

  onResponseEnd(): void {
    // undici treats a connection reset as the normal end of a body without a length. By RFC 9112 8 the body is incomplete, so the call
    // fails.
    if (this.endsWithConnection && this.wasReset?.() === true)
      this.fail(new errors.SocketError('the connection was reset'))
    else if (this.finish(true)) this.sink.onEnd()
  }

  onResponseError(_controller: Dispatcher.DispatchController | undefined, error: Error): void {
    this.fail(error)
  }

  private fail(cause: Error): void {
    if (this.finish(false)) this.sink.onFailure(cause, this.isSent())
  }

  private finish(replied: boolean): boolean {
    if (this.done) return false
    this.done = true
    this.cancelInterim?.()
    this.onDone?.(replied)
    return true
  }
}

export interface CallEnd {
  /** The error if the whole reply did not arrive, otherwise `undefined`. */
  readonly failure: Error | undefined
  /** True if the request was sent and may have been applied. */
  readonly sent: boolean
  /** The status of the final response, or 0 if no response arrived. */
  readonly status: number
  readonly fields: ReplyFields
  readonly body: Pieces
}

export interface CallTrace {
  /** The header fields to add to the request, as alternating names and values. */
  readonly fields: readonly string[]
  /** Ends the trace. Called once, with the status of the reply, or with `undefined` if the whole reply did not arrive. */
  end(status: number | undefined): void
}

export interface CallOptions {
  readonly clock: Clock
  readonly group: CallGroup
  /** Maximum size of the body of the reply in bytes. A larger body ends the call with undici's `ResponseExceededMaxSizeError`. */
  readonly maxBytes: number
  /** A signal that ends the call, which then fails with the signal's reason. */
  readonly signal?: AbortSignal | undefined
  /** Called synchronously just before the request is written. If it throws, nothing is sent, and the call fails with its error. */
  readonly beforeSend?: (() => void) | undefined
  /**
   * Called once for a request that was sent, with the status and the time until the status line. After a failure, `status` is `undefined`.
   */
  readonly onAnswered?: ((status: number | undefined, durationMs: number) => void) | undefined
  readonly trace?: (() => CallTrace | undefined) | undefined
}

/** A request whose header fields are a list of alternating names and values. */
interface CallRequest extends Dispatcher.DispatchOptions {
  readonly headers: string[]
}

/** A group of calls with one deadline. `withdraw` ends the calls of the group that are not sent yet. */
export class CallGroup {
  readonly leftMs: () => number
  private readonly clock: Clock
  // Slots for calls are reused, because a `Set`, or an abort listener or timer for each call, would delay the garbage collection of ended
  // calls.
  private readonly calls: (StreamCall | undefined)[] = []
  private readonly free: number[] = []
  private cancelTimer: (() => void) | undefined

  /** `leftMs` returns the milliseconds left for each call as a whole, from the wait for a connection to the last byte of the reply. */
  constructor(clock: Clock, leftMs: () => number) {
    this.clock = clock
    this.leftMs = leftMs
  }

  add(call: StreamCall): number {
    const slot = this.free.pop() ?? this.calls.length
    this.calls[slot] = call
    // The time is rounded up, because the timer counts whole milliseconds and must not fire before the deadline.
    this.cancelTimer ??= this.clock.after(Math.ceil(Math.max(0, this.leftMs())), () => this.expire())
    return slot
  }

  remove(slot: number): void {
    this.calls[slot] = undefined
    this.free.push(slot)
    if (this.free.length < this.calls.length) return
    this.cancelTimer?.()
    this.cancelTimer = undefined
  }

  withdraw(reason: Error): void {
    for (const call of this.calls.slice()) if (call?.isSent() === false) call.abort(reason)
  }

  private expire(): void {
    this.cancelTimer = undefined
    // `onDone` is set once a call has a connection, so a call without `onDone` was still waiting for a connection.
    for (const call of this.calls.slice())
      call?.abort(call.onDone === undefined ? overloaded('connection') : overdue())
  }
}

/**
 * Sends one request and reads its whole reply. Never rejects. `failure` is undici's error, the signal's reason, the error of `beforeSend`,
 * `ADP_OVERLOADED` if no connection became free, or `ADP_BUDGET_EXCEEDED` after the deadline. Unlike undici's `request`, this function
 * limits the total time and size, and a reply in many small pieces takes no more memory than a reply in a few large pieces.
 */
export function sendCall(
  connections: Connections,
  request: CallRequest,
  wait: ConnectionWait,
  options: CallOptions,
): Promise<CallEnd> {
  const trace = options.trace?.()
  const sent = trace === undefined ? request : { ...request, headers: [...request.headers, ...trace.fields] }
  return new Promise((resolve) => {
    connections.dispatch(sent, new WholeReply(options, resolve, trace).call, wait)
  })
}

class WholeReply implements ReplySink, CallEnd {
  readonly call: StreamCall
  failure: Error | undefined
  sent = true
  status = 0
  fields = NO_FIELDS
  readonly body = new Pieces()
  private readonly options: CallOptions
  private readonly resolve: (end: CallEnd) => void
  private readonly trace: CallTrace | undefined
  private readonly slot: number
  private startedMs = 0

  constructor(options: CallOptions, resolve: (end: CallEnd) => void, trace: CallTrace | undefined) {
    const { group, signal } = options
    this.options = options
    this.resolve = resolve
    this.trace = trace
    this.call = new StreamCall(this)
    this.slot = group.add(this.call)
    signal?.addEventListener('abort', this)
    if (signal?.aborted === true) this.handleEvent()
  }

  beforeSend(): void {
    this.options.beforeSend?.()
    this.startedMs = this.options.clock.nowMs()
  }

  onHead({ status, fields }: ReplyHead): void {
    this.status = status
    this.fields = fields
    this.answered(status)
  }

  onData(chunk: Buffer): boolean {
    if (this.body.size + chunk.length > this.options.maxBytes)
      this.call.abort(new errors.ResponseExceededMaxSizeError())
    else this.body.add(chunk)
    return true
  }

  onEnd(): void {
    const { options } = this
    options.signal?.removeEventListener('abort', this)
    options.group.remove(this.slot)
    this.trace?.end(this.failure === undefined ? this.status : undefined)
    this.resolve(this)
  }

  onFailure(cause: Error, sent: boolean): void {
    if (sent && this.status === 0) this.answered(undefined)
    this.failure = cause
    this.sent = sent
    this.onEnd()
  }

  handleEvent(): void {
    const reason: unknown = this.options.signal?.reason
    this.call.abort(reason instanceof Error ? reason : new errors.RequestAbortedError())
  }

  private answered(status: number | undefined): void {
    const { clock, onAnswered } = this.options
    onAnswered?.(status, clock.nowMs() - this.startedMs)
  }
}

const NO_FIELDS = new ReplyFields(undefined)

const overdue = (): AdapterError =>
  new AdapterError('ADP_BUDGET_EXCEEDED', 'The whole reply did not arrive in time.')
