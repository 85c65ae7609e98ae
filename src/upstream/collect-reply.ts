import type { IncomingHttpHeaders } from 'node:http'

import { Agent, type Dispatcher, errors } from 'undici'

import type { Clock } from '../clock.ts'
import { AdapterError } from '../errors.ts'
import { Pieces } from '../http/pieces.ts'
import { type ConnectionUser, toClientOptions, type UpstreamTimeouts } from './connections.ts'
import { overloaded } from './call-budget.ts'

/** A reply, read whole; its body is not joined yet, since many replies may end in one turn of the event loop. */
interface CollectedReply {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: Pieces
}

interface CollectOptions {
  /** A larger reply is rejected with undici's `ResponseExceededMaxSizeError`. */
  readonly maxBytes: number
  readonly clock: Clock
  /** Time for all of it, connecting included; whatever trickles in does not prolong it. */
  readonly timeoutMs: number
  readonly signal: AbortSignal | undefined
  /** Called once for a request that left: with its status, or undefined where none arrived, and the time until then. */
  readonly onAnswered?: ((status: number | undefined, durationMs: number) => void) | undefined
}

/** The time for a reply is over. */
export class ReplyOverdueError extends Error {
  override readonly name = 'ReplyOverdueError'
}

/**
 * Sends one request and reads the reply whole. Not undici's `request`: the time and the bytes are bounded absolutely, and
 * chunks of a few bytes cost no more memory than large ones. Rejects with `ReplyOverdueError`, with the signal's reason, with
 * undici's errors, or with `ADP_OVERLOADED` where no connection became free.
 */
export function collectReply(
  dispatch: (user: ConnectionUser) => void,
  options: CollectOptions,
): Promise<CollectedReply> {
  return new Promise((resolve, reject) => {
    dispatch(new CollectHandler(options, resolve, reject))
  })
}

class CollectHandler implements ConnectionUser {
  onDone: ((replied: boolean) => void) | undefined
  private readonly options: CollectOptions
  private readonly resolve: (reply: CollectedReply) => void
  private readonly reject: (cause: unknown) => void
  private readonly cancel: () => void
  private readonly onAbort: () => void
  private readonly pieces = new Pieces()
  private controller: Dispatcher.DispatchController | undefined
  private status = 0
  private headers: IncomingHttpHeaders = {}
  private startedMs: number | undefined
  private done = false

  constructor(
    options: CollectOptions,
    resolve: (reply: CollectedReply) => void,
    reject: (cause: unknown) => void,
  ) {
    this.options = options
    this.resolve = resolve
    this.reject = reject
    const { clock, timeoutMs, signal } = options
    this.onAbort = () => this.stop(signal?.reason)
    this.cancel = clock.after(Math.max(0, timeoutMs), () => {
      const isWaiting = this.onDone === undefined
      this.stop(
        isWaiting ? overloaded('connection') : new ReplyOverdueError('The time for the reply is over.'),
      )
    })
    if (signal?.aborted === true) this.onAbort()
    else signal?.addEventListener('abort', this.onAbort)
  }

  isDone(): boolean {
    return this.done
  }

  onRefused(): void {
    if (this.finish(false)) this.reject(overloaded('connection'))
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    // It ended while it waited for its connection: it must not leave now.
    if (this.done) throw new AdapterError('ADP_BUDGET_EXCEEDED', 'The read ended before it was sent.')
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
    this.answered(status)
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.pieces.size + chunk.length > this.options.maxBytes)
      this.stop(new errors.ResponseExceededMaxSizeError())
    else this.pieces.add(chunk)
  }

  onResponseEnd(): void {
    if (!this.finish(true)) return
    this.resolve({ status: this.status, headers: this.headers, body: this.pieces })
  }

  onResponseError(_controller: Dispatcher.DispatchController | undefined, error: Error): void {
    this.answered(undefined)
    if (this.finish(false)) this.reject(error)
  }

  private stop(cause: unknown): void {
    if (this.done) return
    // Its error comes back before `abort` returns, and must find the cause given.
    this.reject(cause)
    this.controller?.abort(new errors.RequestAbortedError('the reply is not waited for any longer'))
    this.finish(false)
  }

  private answered(status: number | undefined): void {
    const { startedMs } = this
    if (startedMs === undefined) return
    this.startedMs = undefined
    this.options.onAnswered?.(status, this.options.clock.nowMs() - startedMs)
  }

  private finish(replied: boolean): boolean {
    if (this.done) return false
    this.done = true
    this.cancel()
    this.options.signal?.removeEventListener('abort', this.onAbort)
    this.onDone?.(replied)
    return true
  }
}

/** A reply that was read whole. */
export interface WholeReply {
  readonly status: number
  readonly contentType: string | undefined
  readonly body: Buffer
}

/** GETs of whole replies from any address, over connections of its own. */
export interface WholeReader {
  /** Undefined: no whole reply came in time, or it was larger than allowed. Never rejects. */
  get(url: URL, headers: Readonly<Record<string, string>>, timeoutMs: number): Promise<WholeReply | undefined>
  close(): Promise<void>
}

interface WholeReaderOptions {
  /** To each address. */
  readonly connections: number
  readonly timeouts: UpstreamTimeouts
  readonly maxBytes: number
  readonly clock: Clock
}

/** Creates the reader; replies are asked for without an encoding. */
export function createWholeReader(options: WholeReaderOptions): WholeReader {
  const { connections, timeouts, maxBytes, clock } = options
  const agent = new Agent({ connections, ...toClientOptions(timeouts) })
  return {
    get: async (url, headers, timeoutMs) => {
      const path = `${url.pathname}${url.search}`
      const request = { origin: url.origin, path, method: 'GET' as const, headers }
      const wanted = { maxBytes, clock, timeoutMs, signal: undefined }
      try {
        const reply = await collectReply((user) => agent.dispatch(request, user), wanted)
        return {
          status: reply.status,
          contentType: reply.headers['content-type'],
          body: reply.body.join(),
        }
      } catch {
        // The caller has other ways to find out, or counts the side as silent.
        return undefined
      }
    },
    close: () => agent.destroy(),
  }
}
