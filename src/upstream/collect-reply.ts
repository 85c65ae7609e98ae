import type { IncomingHttpHeaders } from 'node:http'

import { type Dispatcher, errors } from 'undici'

import { AdapterError } from '../errors.ts'
import { Pieces } from '../http/pieces.ts'
import type { Clock } from '../clock.ts'

/** A reply, read whole; its body is not joined yet, since many replies may end in one turn of the event loop. */
export interface CollectedReply {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: Pieces
}

export interface CollectOptions {
  /** A larger reply is rejected with undici's `ResponseExceededMaxSizeError`. */
  readonly maxBytes: number
  readonly clock: Clock
  /** Time for all of it, connecting included; whatever trickles in does not prolong it. */
  readonly timeoutMs: number
  readonly signal: AbortSignal | undefined
  /** Called with the status line, once. */
  readonly onStatus: (status: number) => void
  /** Where the body is collected as far as it fits; the reply refers to it. Undefined: in memory of its own. */
  readonly buffer?: Buffer
}

/** The time for a reply is over. */
export class ReplyOverdueError extends Error {
  override readonly name = 'ReplyOverdueError'
}

/**
 * Sends one request and reads the reply whole. Not undici's `request`: the time and the bytes are bounded absolutely, and
 * chunks of a few bytes cost no more memory than large ones. Rejects with `ReplyOverdueError`, with the signal's reason, or with
 * undici's errors.
 */
export function collectReply(
  dispatcher: Dispatcher,
  request: Dispatcher.DispatchOptions,
  options: CollectOptions,
): Promise<CollectedReply> {
  return new Promise((resolve, reject) => {
    const handler = new CollectHandler(options, resolve, reject)
    dispatcher.dispatch(request, handler)
  })
}

class CollectHandler implements Dispatcher.DispatchHandler {
  private readonly options: CollectOptions
  private readonly resolve: (reply: CollectedReply) => void
  private readonly reject: (cause: unknown) => void
  private readonly cancel: () => void
  private readonly onAbort: () => void
  private readonly pieces: Pieces
  private controller: Dispatcher.DispatchController | undefined
  private status = 0
  private headers: IncomingHttpHeaders = {}
  private done = false

  constructor(
    options: CollectOptions,
    resolve: (reply: CollectedReply) => void,
    reject: (cause: unknown) => void,
  ) {
    this.options = options
    this.resolve = resolve
    this.reject = reject
    const { clock, timeoutMs, signal, buffer } = options
    this.pieces = new Pieces(buffer)
    this.onAbort = () => {
      this.stop(signal?.reason)
    }
    this.cancel = clock.after(Math.max(0, timeoutMs), () => {
      this.stop(new ReplyOverdueError('The time for the reply is over.'))
    })
    if (signal?.aborted === true) this.onAbort()
    else signal?.addEventListener('abort', this.onAbort)
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    // It ended while it stood in line: it must not leave now.
    if (this.done) throw new AdapterError('ADP_BUDGET_EXCEEDED', 'The read ended before it was sent.')
    this.controller = controller
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: IncomingHttpHeaders,
  ): void {
    if (status < 200) return
    this.status = status
    this.headers = headers
    this.options.onStatus(status)
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    // The buffer may hold another reply by now.
    if (this.done) return
    if (this.pieces.size + chunk.length > this.options.maxBytes)
      this.stop(new errors.ResponseExceededMaxSizeError())
    else this.pieces.add(chunk)
  }

  onResponseEnd(): void {
    if (!this.finish()) return
    this.resolve({ status: this.status, headers: this.headers, body: this.pieces })
  }

  onResponseError(_controller: Dispatcher.DispatchController | undefined, error: Error): void {
    if (this.finish()) this.reject(error)
  }

  private stop(cause: unknown): void {
    if (!this.finish()) return
    this.controller?.abort(new errors.RequestAbortedError('the reply is not waited for any longer'))
    this.reject(cause)
  }

  private finish(): boolean {
    if (this.done) return false
    this.done = true
    this.cancel()
    this.options.signal?.removeEventListener('abort', this.onAbort)
    return true
  }
}
