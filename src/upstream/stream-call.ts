import type { IncomingHttpHeaders } from 'node:http'

import { type Dispatcher, errors } from 'undici'

import type { Clock } from '../clock.ts'
import { AdapterError } from '../errors.ts'
import { overloaded } from './call-budget.ts'
import type { ConnectionUser } from './connections.ts'

/** The head of a final reply. */
export interface ReplyHead {
  readonly status: number
  readonly reason: string
  /** The fields as they were sent: name, value, name, value. */
  readonly fields: readonly string[]
  readonly headers: IncomingHttpHeaders
}

/** Where a reply goes, piece by piece; one of `onEnd` and `onFailure` is the last call. */
export interface ReplySink {
  /** Called right before the request is written; where it throws, nothing is sent, and the call fails with that error. */
  beforeSend(): void
  /** Throws to refuse the reply: the call then fails with that error. */
  onHead(head: ReplyHead): void
  /** False: no more before `StreamCall.resume`. */
  onData(chunk: Buffer): boolean
  onEnd(): void
  /** There is no whole reply. `sent`: the request was written, or a part of it, and may have been applied. */
  onFailure(cause: Error, sent: boolean): void
}

interface StreamCallOptions {
  /** The longest time from the end of the request to the status line, also where interim responses keep coming, ms. */
  readonly headersMs: number
  readonly clock: Clock
  /** Called once for a call that left: with its status, or undefined where none arrived. */
  readonly onAnswered?: ((status: number | undefined, durationMs: number) => void) | undefined
}

/**
 * Follows one request through undici's dispatcher and streams its reply to a sink. Not `Pool.request`: the dispatcher shows whether
 * the request left (decision 005). Interim responses and trailers end here.
 */
export class StreamCall implements ConnectionUser {
  onDone: ((replied: boolean) => void) | undefined
  wasReset: (() => boolean) | undefined
  private readonly sink: ReplySink
  private readonly options: StreamCallOptions
  private controller: Dispatcher.DispatchController | undefined
  private startedMs = 0
  private done = false
  private answered = false
  private endsWithConnection = false
  private cancelInterim: (() => void) | undefined

  constructor(sink: ReplySink, options: StreamCallOptions) {
    this.sink = sink
    this.options = options
  }

  isDone(): boolean {
    return this.done
  }

  isSent(): boolean {
    return this.controller !== undefined
  }

  /** Ends the call; the sink gets the cause as a failure. */
  abort(cause: Error): void {
    if (this.done) return
    const { controller } = this
    // The controller's abort closes the connection and reports back before it returns.
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
    // It ended while its connection was being made: thrown, because an abort would close the connection.
    if (this.done) throw new AdapterError('ADP_BUDGET_EXCEEDED', 'The call ended before it was sent.')
    this.sink.beforeSend()
    this.controller = controller
    this.startedMs = this.options.clock.nowMs()
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: IncomingHttpHeaders,
    reason = '',
  ): void {
    if (status < 200) {
      // Each interim response would begin undici's time for the status line anew.
      this.cancelInterim ??= this.options.clock.after(this.options.headersMs, () =>
        this.abort(new errors.HeadersTimeoutError()),
      )
      return
    }
    this.cancelInterim?.()
    this.answer(status)
    this.endsWithConnection =
      headers['content-length'] === undefined && headers['transfer-encoding'] === undefined
    this.sink.onHead(new ReceivedHead(status, reason, headers, controller.rawHeaders))
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (!this.sink.onData(chunk)) controller.pause()
  }

  onResponseEnd(): void {
    // undici takes a reset connection for the end of a body without a length; RFC 9112 8 calls it incomplete.
    if (this.endsWithConnection && this.wasReset?.() === true)
      this.fail(new errors.SocketError('the connection was reset'))
    else if (this.finish(true)) this.sink.onEnd()
  }

  onResponseError(_controller: Dispatcher.DispatchController | undefined, error: Error): void {
    this.fail(error)
  }

  private fail(cause: Error): void {
    if (!this.finish(false)) return
    const sent = this.isSent()
    if (sent) this.answer(undefined)
    this.sink.onFailure(cause, sent)
  }

  private answer(status: number | undefined): void {
    if (this.answered) return
    this.answered = true
    this.options.onAnswered?.(status, this.options.clock.nowMs() - this.startedMs)
  }

  private finish(replied: boolean): boolean {
    if (this.done) return false
    this.done = true
    this.cancelInterim?.()
    this.onDone?.(replied)
    return true
  }
}

type RawHeaders = Dispatcher.DispatchController['rawHeaders']

/** A class: an accessor that each reply has for itself would keep a tenth of all requests from being collected early. */
class ReceivedHead implements ReplyHead {
  readonly status: number
  readonly reason: string
  readonly headers: IncomingHttpHeaders
  private readonly raw: RawHeaders

  constructor(status: number, reason: string, headers: IncomingHttpHeaders, raw: RawHeaders) {
    this.status = status
    this.reason = reason
    this.headers = headers
    this.raw = raw
  }

  /** undici gives fields as buffers, in the received order and case. */
  get fields(): readonly string[] {
    const { raw } = this
    return Array.isArray(raw)
      ? raw.map((part) => (typeof part === 'string' ? part : part.toString('latin1')))
      : []
  }
}
