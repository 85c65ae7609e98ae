import type { IncomingHttpHeaders } from 'node:http'

import { type Dispatcher, errors } from 'undici'

import { AdapterError } from '../../errors.ts'
import type { PostOutcome, UnknownReason } from '../errors/post-outcome.ts'
import { readOutcome } from './read-outcome.ts'

/** An upstream's answer to one record is small; more than this is no answer. */
const MAX_REPLY_BYTES = 1_048_576

/**
 * Follows one POST through undici's dispatcher and resolves its outcome exactly once. The dispatcher, not `Pool.request`:
 * it tells whether the request left, and spares a stream and a promise for each mark.
 */
export class PostHandler implements Dispatcher.DispatchHandler {
  readonly outcome: Promise<PostOutcome>
  private settle: (outcome: PostOutcome) => void = () => undefined
  private readonly onSettled: (handler: PostHandler) => void
  private readonly nowMs: () => number
  private controller: Dispatcher.DispatchController | undefined
  private status = 0
  private retryAfter: string | undefined
  private chunks: Buffer[] = []
  private bytes = 0
  private done = false

  constructor(nowMs: () => number, onSettled: (handler: PostHandler) => void) {
    this.nowMs = nowMs
    this.onSettled = onSettled
    this.outcome = new Promise((resolve) => {
      this.settle = resolve
    })
  }

  /** Ends the waiting because the budget is spent: unknown once the request has left, not applied before. */
  expire(): void {
    if (this.controller === undefined) {
      this.finish({ kind: 'notApplied', reason: 'budget', retryAfterMs: undefined })
    } else {
      this.controller.abort(new errors.RequestAbortedError('the budget of the batch is spent'))
      this.finish({ kind: 'unknown', reason: 'timeout' })
    }
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    // Expired while it stood in the queue: it must not leave now. Thrown, because an abort would close the connection.
    if (this.done) throw new AdapterError('ADP_BUDGET_EXCEEDED', 'The record expired before it was sent.')
    this.controller = controller
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    statusCode: number,
    headers: IncomingHttpHeaders,
  ): void {
    if (statusCode < 200) return
    this.status = statusCode
    if (statusCode >= 400) this.retryAfter = headers['retry-after']
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.bytes += chunk.length
    if (this.bytes > MAX_REPLY_BYTES) controller.abort(new errors.ResponseExceededMaxSizeError())
    else this.chunks.push(chunk)
  }

  onResponseEnd(): void {
    const [first] = this.chunks
    const body = this.chunks.length === 1 && first !== undefined ? first : Buffer.concat(this.chunks)
    this.finish(readOutcome(this.status, body.toString('utf8'), this.retryAfter, this.nowMs()))
  }

  onResponseError(_controller: Dispatcher.DispatchController | undefined, error: Error): void {
    if (this.controller === undefined) {
      this.finish({ kind: 'notApplied', reason: 'notConnected', retryAfterMs: undefined })
    } else if (this.status >= 300) {
      // The status line came; only the explanation was lost.
      this.finish(readOutcome(this.status, '', this.retryAfter, this.nowMs()))
    } else {
      this.finish({ kind: 'unknown', reason: reasonOf(error) })
    }
  }

  private finish(outcome: PostOutcome): void {
    if (this.done) return
    this.done = true
    this.chunks = []
    this.settle(outcome)
    this.onSettled(this)
  }
}

function reasonOf(error: Error): UnknownReason {
  if (error instanceof errors.ResponseExceededMaxSizeError) return 'unreadableReply'
  const patience = [errors.HeadersTimeoutError, errors.BodyTimeoutError, errors.RequestAbortedError]
  return patience.some((kind) => error instanceof kind) ? 'timeout' : 'connectionLost'
}
