import type { IncomingHttpHeaders } from 'node:http'

import { type Dispatcher, errors } from 'undici'

import { AdapterError } from '../errors.ts'
import { Pieces } from '../http/pieces.ts'
import type { ConnectionUser } from './connections.ts'
import type { LossReason, Unanswered } from './post-failure.ts'

/** An upstream's reply, as far as an outcome is read from it. */
export interface UpstreamReply {
  readonly status: number
  /** Empty if only the status line was received. */
  readonly body: Buffer
  readonly contentType: string | undefined
  readonly retryAfter: string | undefined
}

/** How the reply to a POST is read. */
export interface ReplyReader<Outcome> {
  readonly read: (reply: UpstreamReply) => Outcome
  /** A larger reply is not an answer. */
  readonly maxReplyBytes: number
  /** Reads a large reply in a turn of the event loop of its own; undefined: at once. */
  readonly later?: ((act: () => void) => void) | undefined
  /** Called with the status, or undefined where none arrived, and the time since the request left, ms. */
  readonly onAnswered?: ((status: number | undefined, durationMs: number) => void) | undefined
}

const NO_BYTES = Buffer.alloc(0)
/** Many replies may arrive in one turn of the event loop. Those of this size are read in one turn each. */
const LARGE_REPLY_BYTES = 32_768

/** The part of a call that a budget can end. */
export interface Expirable {
  hasLeft(): boolean
  expire(): void
}

/**
 * Follows one POST through undici's dispatcher and reports its outcome exactly once. The dispatcher, not `Pool.request`:
 * it shows whether the request left, and spares a stream and promises for each mark.
 */
export class PostHandler<Outcome> implements ConnectionUser, Expirable {
  /** Where the handler is kept among those in flight. */
  readonly slot: number
  onDone: ((replied: boolean) => void) | undefined
  private readonly onOutcome: (outcome: Outcome | Unanswered) => void
  private readonly release: (slot: number) => void
  private readonly reader: ReplyReader<Outcome>
  private readonly maySend: () => boolean
  private controller: Dispatcher.DispatchController | undefined
  private startedMs = 0
  private status = 0
  private retryAfter: string | undefined
  private contentType: string | undefined
  /** The only chunk, of most replies. */
  private first: Buffer | undefined
  private pieces: Pieces | undefined
  private bytes = 0
  private done = false

  /**
   * `release` is called with the slot before the outcome is reported. `maySend` is asked when the request goes to its socket: on
   * false it does not.
   */
  constructor(
    reader: ReplyReader<Outcome>,
    slot: number,
    onOutcome: (outcome: Outcome | Unanswered) => void,
    release: (slot: number) => void,
    maySend: () => boolean = () => true,
  ) {
    this.reader = reader
    this.slot = slot
    this.onOutcome = onOutcome
    this.release = release
    this.maySend = maySend
  }

  isDone(): boolean {
    return this.done
  }

  hasLeft(): boolean {
    return this.controller !== undefined
  }

  /** Stops waiting because the deadline has passed: unknown once the request has left, not applied before. */
  expire(): void {
    if (this.controller === undefined) {
      this.finish({ kind: 'notApplied', reason: 'budget', retryAfterMs: undefined })
    } else {
      this.controller.abort(new errors.RequestAbortedError('the budget of the batch is spent'))
      this.finish({ kind: 'unknown', reason: 'timeout' })
    }
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    // Expired while its connection was being made: it must not leave now. Thrown, because an abort would close the connection.
    if (this.done) throw new AdapterError('ADP_BUDGET_EXCEEDED', 'The record expired before it was sent.')
    // undici writes to the socket in the turn of the event loop in which it calls this: nothing can come in between.
    if (!this.maySend()) {
      this.finish({ kind: 'notApplied', reason: 'leaseLost', retryAfterMs: undefined })
      throw new AdapterError('ADP_JOURNAL_LOST', 'The lease ended before the record was sent.')
    }
    this.controller = controller
    if (this.reader.onAnswered !== undefined) this.startedMs = performance.now()
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    statusCode: number,
    headers: IncomingHttpHeaders,
  ): void {
    if (statusCode < 200) return
    this.status = statusCode
    this.reader.onAnswered?.(statusCode, performance.now() - this.startedMs)
    this.contentType = headers['content-type']
    if (statusCode >= 400) this.retryAfter = headers['retry-after']
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.bytes += chunk.length
    if (this.bytes > this.reader.maxReplyBytes) controller.abort(new errors.ResponseExceededMaxSizeError())
    else if (this.pieces !== undefined) this.pieces.add(chunk)
    else if (this.first === undefined) this.first = chunk
    else {
      this.pieces = new Pieces()
      this.pieces.add(this.first)
      this.pieces.add(chunk)
    }
  }

  onResponseEnd(): void {
    const { later } = this.reader
    if (later === undefined || this.bytes < LARGE_REPLY_BYTES) this.readReply()
    else
      later(() => {
        if (!this.done) this.readReply()
      })
  }

  onResponseError(_controller: Dispatcher.DispatchController | undefined, error: Error): void {
    if (this.controller === undefined) {
      this.finish({ kind: 'notApplied', reason: 'notConnected', retryAfterMs: undefined })
      return
    }
    if (this.status === 0) this.reader.onAnswered?.(undefined, performance.now() - this.startedMs)
    if (this.status >= 300) {
      // The status line was received; only the explanation was lost.
      this.finish(this.read(NO_BYTES))
    } else {
      this.finish({ kind: 'unknown', reason: reasonOf(error) })
    }
  }

  private readReply(): void {
    this.finish(this.read(this.pieces?.join() ?? this.first ?? NO_BYTES), true)
  }

  private read(body: Buffer): Outcome {
    const { status, contentType, retryAfter } = this
    return this.reader.read({ status, body, contentType, retryAfter })
  }

  private finish(outcome: Outcome | Unanswered, replied = false): void {
    if (this.done) return
    this.done = true
    this.first = undefined
    this.pieces = undefined
    this.release(this.slot)
    this.onDone?.(replied)
    this.onOutcome(outcome)
  }
}

function reasonOf(error: Error): LossReason {
  if (error instanceof errors.ResponseExceededMaxSizeError) return 'unreadableReply'
  const patience = [errors.HeadersTimeoutError, errors.BodyTimeoutError, errors.RequestAbortedError]
  return patience.some((kind) => error instanceof kind) ? 'timeout' : 'connectionLost'
}
