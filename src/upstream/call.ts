import type { IncomingHttpHeaders } from 'node:http'

import { type Dispatcher, errors } from 'undici'

import type { Clock } from '../clock.ts'
import { AdapterError } from '../errors.ts'
import { Pieces } from '../http/body.ts'
import { overloaded } from './call-budget.ts'
import type { Connections, ConnectionWait } from './connections.ts'
import { type ReplyHead, type ReplySink, StreamCall } from './stream-call.ts'

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
  /** What the call shares its deadline with. */
  readonly group: CallGroup
  /** A larger reply ends the call with undici's `ResponseExceededMaxSizeError`. */
  readonly maxBytes: number
  /** Ends the call with the signal's reason. */
  readonly signal?: AbortSignal | undefined
  /** Called in the turn of the event loop in which the request is written: where it throws, nothing is sent, and that error is the failure. */
  readonly beforeSend?: (() => void) | undefined
  /** Called once for a call that left: with its status, or undefined where none arrived, and the time until then. */
  readonly onAnswered?: ((status: number | undefined, durationMs: number) => void) | undefined
}

/** Calls with one deadline, which can be withdrawn together. */
export class CallGroup {
  readonly leftMs: () => number
  private readonly clock: Clock
  // Reused slots: listeners of a signal, timers of their own or the copies of a Set's table would keep calls from being collected early.
  private readonly calls: (StreamCall | undefined)[] = []
  private readonly free: number[] = []
  private cancelTimer: (() => void) | undefined

  /** `leftMs`: time for whole calls, the wait for a connection and the last byte of the reply included. */
  constructor(clock: Clock, leftMs: () => number) {
    this.clock = clock
    this.leftMs = leftMs
  }

  add(call: StreamCall): number {
    const slot = this.free.pop() ?? this.calls.length
    this.calls[slot] = call
    this.cancelTimer ??= this.clock.after(Math.max(0, this.leftMs()), () => this.expire())
    return slot
  }

  remove(slot: number): void {
    this.calls[slot] = undefined
    this.free.push(slot)
    if (this.free.length < this.calls.length) return
    this.cancelTimer?.()
    this.cancelTimer = undefined
  }

  /** Ends the calls that have not left. */
  withdraw(reason: Error): void {
    for (const call of this.calls.slice()) if (call?.isSent() === false) call.abort(reason)
  }

  private expire(): void {
    this.cancelTimer = undefined
    // A call has `onDone` once it has a connection.
    for (const call of this.calls.slice())
      call?.abort(call.onDone === undefined ? overloaded('connection') : overdue())
  }
}

/**
 * Sends one request and reads its reply whole. Never rejects. The failure is undici's error, the signal's reason, that of
 * `beforeSend`, `ADP_OVERLOADED` where no connection became free, or `ADP_BUDGET_EXCEEDED` once its time is over. Not
 * undici's `request`: time and bytes are bounded absolutely, and chunks of a few bytes cost no more memory than large ones.
 */
export function sendCall(
  connections: Connections,
  request: Dispatcher.DispatchOptions,
  wait: ConnectionWait,
  options: CallOptions,
): Promise<CallEnd> {
  return new Promise((resolve) => {
    connections.dispatch(request, new WholeReply(options, resolve).call, wait)
  })
}

/** Collects the reply of one call, within its time and size. */
class WholeReply implements ReplySink {
  readonly call: StreamCall
  private readonly options: CallOptions
  private readonly resolve: (end: CallEnd) => void
  private readonly slot: number
  private readonly body = new Pieces()
  private head: ReplyHead | undefined

  constructor(options: CallOptions, resolve: (end: CallEnd) => void) {
    const { clock, group, signal, onAnswered } = options
    this.options = options
    this.resolve = resolve
    this.call = new StreamCall(this, { headersMs: Math.max(0, group.leftMs()), clock, onAnswered })
    this.slot = group.add(this.call)
    signal?.addEventListener('abort', this)
    if (signal?.aborted === true) this.handleEvent()
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

  /** The signal was aborted. */
  handleEvent(): void {
    const reason: unknown = this.options.signal?.reason
    this.call.abort(reason instanceof Error ? reason : new errors.RequestAbortedError())
  }

  private end(failure: Error | undefined, sent: boolean): void {
    const { head, body, options } = this
    options.signal?.removeEventListener('abort', this)
    options.group.remove(this.slot)
    this.resolve({ failure, sent, status: head?.status ?? 0, headers: head?.headers ?? {}, body })
  }
}

const overdue = (): AdapterError =>
  new AdapterError('ADP_BUDGET_EXCEEDED', 'The time for the call ended before its reply was whole.')
