import type { ClientRequest, IncomingMessage, ServerResponse } from 'node:http'

import type { Clock } from '../clock.ts'
import { AdapterError } from '../errors.ts'
import type { Events } from '../observability/events.ts'
import type { QueueKey, UpstreamTimeouts } from '../upstream/index.ts'
import type { HeldBytes } from './byte-budget.ts'
import { type CapturedReply, type RelayedHead, ReplyCapture } from './captured-reply.ts'
import { sendError } from './error-reply.ts'
import type { LinkRewriter } from './link-rewriter.ts'
import { isSafeMethod, lossOnV2 } from './lost-request.ts'
import type { RelayedFields } from './relayed-fields.ts'
import { RelayedReply } from './relayed-reply.ts'
import { GONE } from './until-gone.ts'

/** Where links in JSON replies lead. */
export interface RelayLinks {
  /** The address of the adapter, without a slash at its end. */
  readonly base: string
  /** That of next links, see `V2_LINK_SEGMENT`. */
  readonly nextBase: string
}

/** How one request is relayed. */
export interface RelayCall {
  /** Whose share of connections and bytes it uses. */
  readonly queueKey: QueueKey
  /** Links in JSON replies to GET and HEAD lead there; undefined: they stay as they are. */
  readonly links?: RelayLinks | undefined
  /** The body where it was read already: the bytes as they came, without decoding. */
  readonly body?: Buffer | undefined
  /** Failures before a reply are returned only: the caller answers the client. */
  readonly hold?: boolean
  /** Once the whole request has arrived, the reply is read to its end also when the client has gone. */
  readonly keepGoing?: boolean
  /** Bytes of a body that the copy of the reply may have; default 0: no copy is made. */
  readonly captureBytes?: number
  /** Called once the request has a connection, right before its first byte is sent; nothing is sent where it throws. */
  readonly beforeSend?: () => void
  readonly onReplyHead?: (head: RelayedHead) => void
  /**
   * Called with the copy of the reply when all of it has come; the last bytes go to the client once the returned promise has
   * settled.
   */
  readonly onReplyEnd?: (reply: CapturedReply) => void | Promise<void>
}

/** What became of a relayed request. */
export type RelayOutcome =
  /** V2 answered, and its whole reply was handed to the client, where it had not gone. */
  | { readonly kind: 'answered'; readonly status: number; readonly reply: CapturedReply | undefined }
  /** Nothing left for V2. */
  | { readonly kind: 'notSent'; readonly error: AdapterError }
  /** It left, or a part of it, and no reply came. */
  | { readonly kind: 'lost'; readonly error: AdapterError }
  /** The reply broke off; the connection of the client was broken off too. */
  | { readonly kind: 'brokenReply'; readonly status: number; readonly error: AdapterError }

/** A call that left for V2, up to its status line. */
export interface RelayCallSeen {
  readonly kind: 'read' | 'write'
  /** Undefined: no reply arrived. */
  readonly status: number | undefined
  readonly durationMs: number
}

export interface RelayedCallOptions {
  readonly fields: RelayedFields
  readonly timeouts: UpstreamTimeouts
  readonly clock: Clock
  readonly events: Events
  /** Called once for every call that left. */
  readonly onCall: (call: RelayCallSeen) => void
}

/** One request on its way to V2, from the moment when it has a place there. */
export class RelayedCall {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly outcome: Promise<RelayOutcome>
  private readonly options: RelayedCallOptions
  private readonly call: RelayCall
  private readonly createRewriter: (() => LinkRewriter) | undefined
  private readonly held: HeldBytes | undefined
  private readonly settle: (outcome: RelayOutcome) => void
  private outgoing: ClientRequest | undefined
  private reply: RelayedReply | undefined
  private isSent = false
  private isAnswered = false
  private isOver = false
  private startedMs = 0
  private lastMs = 0
  private cancelTimer: (() => void) | undefined
  private readonly onClose = (): void => this.clientGone()

  constructor(
    request: IncomingMessage,
    response: ServerResponse,
    call: RelayCall,
    held: HeldBytes | undefined,
    createRewriter: (() => LinkRewriter) | undefined,
    options: RelayedCallOptions,
  ) {
    this.request = request
    this.response = response
    this.call = call
    this.held = held
    this.createRewriter = createRewriter
    this.options = options
    const { promise, resolve } = Promise.withResolvers<RelayOutcome>()
    this.outcome = promise
    this.settle = resolve
    response.on('close', this.onClose)
  }

  /** Takes the request to V2 once it has a connection, which may still be opening. */
  begin(outgoing: ClientRequest, isSecure: boolean): void {
    this.outgoing = outgoing
    const { socket } = outgoing
    // After an upgrade that was not asked for there is neither a reply nor an error.
    outgoing.on('close', () => {
      if (this.reply === undefined) this.fail(undefined)
    })
    if (this.isOver) {
      outgoing.destroy()
      return
    }
    if (socket?.connecting !== true) {
      this.left()
    } else {
      this.armTimer(this.options.timeouts.connectMs)
      socket.once(isSecure ? 'secureConnect' : 'connect', () => this.left())
    }
  }

  /** Sends a reply on. */
  answer(message: IncomingMessage): void {
    if (this.isOver) {
      message.resume()
      return
    }
    const { request, response, call } = this
    this.stopTimer()
    this.seen(message.statusCode)
    const captureBytes = call.captureBytes ?? 0
    const capture =
      captureBytes > 0 && this.held !== undefined ? new ReplyCapture(captureBytes, this.held) : undefined
    const reply = new RelayedReply(message, request, response, {
      fields: this.options.fields,
      createRewriter: this.createRewriter,
      onHead: call.onReplyHead,
      onReceived: () => this.received(),
      capture,
      onWhole: capture === undefined ? undefined : call.onReplyEnd,
      onEnd: (captured) => this.settle({ kind: 'answered', status: reply.status, reply: captured }),
    })
    try {
      reply.start()
    } catch (cause) {
      this.fail(cause instanceof Error ? cause : undefined)
      return
    }
    this.reply = reply
    // Most replies have come with their head.
    queueMicrotask(() => {
      if (this.isOver || message.complete) return
      message.on('data', () => (this.lastMs = this.options.clock.nowMs()))
      this.lastMs = this.options.clock.nowMs()
      this.watchSilence(() => reply.isPaused)
    })
  }

  /** Ends the call without a whole reply; after its end this changes nothing. */
  fail(cause: Error | undefined): void {
    if (this.isOver) return
    const { request, response, reply, options } = this
    const { events } = options
    this.over()
    this.outgoing?.destroy()
    if (this.isSent) this.seen(undefined)
    const error = cause instanceof AdapterError ? cause : lossOnV2(request.method, this.isSent, cause)
    if (reply !== undefined || response.headersSent) {
      if (cause !== GONE && !response.writableEnded) events.relayFailed({ reason: 'brokenReply' })
      response.destroy()
      this.settle({ kind: 'brokenReply', status: reply?.status ?? response.statusCode, error })
      return
    }
    // Else the client has gone, or has its answer.
    const isOpen = !response.destroyed && !response.writableEnded
    if (isOpen && error !== cause) events.relayFailed({ reason: this.isSent ? 'lost' : 'unreachable' })
    if (isOpen && this.call.hold !== true) sendError(response, error, events)
    this.settle({ kind: this.isSent ? 'lost' : 'notSent', error })
  }

  /** True where links in its reply change. */
  get changesLinks(): boolean {
    return this.createRewriter !== undefined
  }

  /** True once a part of the request may have reached V2. */
  hasLeft(): boolean {
    return this.isSent
  }

  private left(): void {
    if (this.isOver) return
    try {
      this.call.beforeSend?.()
    } catch (cause) {
      this.fail(cause instanceof Error ? cause : undefined)
      return
    }
    this.isSent = true
    this.startedMs = this.options.clock.nowMs()
    this.sendBody()
  }

  /** Sends head and body. */
  private sendBody(): void {
    const { outgoing, request, call } = this
    if (outgoing === undefined || this.isOver) return
    const isFramed = isFramedBody(request)
    // Read whole in one piece where it has arrived: most bodies have.
    const body = call.body ?? (isFramed && request.complete ? readAll(request) : undefined)
    if (isFramed && body === undefined && !request.readableEnded) {
      this.streamBody(outgoing)
      return
    }
    this.addTrailers(outgoing)
    outgoing.end(body)
    this.armTimer(this.options.timeouts.headersMs)
  }

  private streamBody(outgoing: ClientRequest): void {
    const { request, options } = this
    // Before `pipe`, which ends the request to V2 then.
    request.once('end', () => this.addTrailers(outgoing))
    request.pipe(outgoing)
    outgoing.once('finish', () => {
      if (!this.isOver && this.reply === undefined) this.armTimer(options.timeouts.headersMs)
    })
    // The rest of an upload that V2 does not take any longer is dropped, so that the client gets its answer.
    outgoing.once('close', () => {
      request.unpipe(outgoing)
      request.resume()
    })
    this.lastMs = options.clock.nowMs()
    let written = 0
    this.watchSilence(() => {
      const before = written
      written = outgoing.socket?.bytesWritten ?? 0
      return !outgoing.writableNeedDrain || written !== before
    })
  }

  private addTrailers(outgoing: ClientRequest): void {
    const { request, options } = this
    if (request.rawTrailers.length > 0) outgoing.addTrailers(options.fields.trailersOf(request))
  }

  /** Fails the call when V2 has been silent for too long; `isWaiting`: another party is waited for. */
  private watchSilence(isWaiting: () => boolean): void {
    const { timeouts, clock } = this.options
    this.stopTimer()
    const check = (): void => {
      if (isWaiting()) this.lastMs = clock.nowMs()
      const silentMs = clock.nowMs() - this.lastMs
      if (silentMs >= timeouts.bodyMs) this.overdue()
      else this.cancelTimer = clock.after(timeouts.bodyMs - silentMs, check)
    }
    this.cancelTimer = clock.after(timeouts.bodyMs, check)
  }

  private received(): void {
    if (!this.isOver) this.over()
  }

  private clientGone(): void {
    if (this.isOver) return
    const isWhole = this.call.body !== undefined || !isFramedBody(this.request) || this.request.complete
    if (this.call.keepGoing === true && isWhole) this.reply?.drop()
    else this.fail(GONE)
  }

  private over(): void {
    this.isOver = true
    this.stopTimer()
    this.response.off('close', this.onClose)
  }

  private seen(status: number | undefined): void {
    if (this.isAnswered) return
    this.isAnswered = true
    const { onCall, clock } = this.options
    const kind = isSafeMethod(this.request.method) ? 'read' : 'write'
    onCall({ kind, status, durationMs: clock.nowMs() - this.startedMs })
  }

  private armTimer(delayMs: number): void {
    this.stopTimer()
    this.cancelTimer = this.options.clock.after(delayMs, () => this.overdue())
  }

  private stopTimer(): void {
    this.cancelTimer?.()
    this.cancelTimer = undefined
  }

  private overdue(): void {
    this.fail(undefined)
  }
}

/** RFC 9112 6.3: a request has a body when one of the two fields says so. */
export function isFramedBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

function readAll(request: IncomingMessage): Buffer | undefined {
  return (request.read() as Buffer | null) ?? undefined
}
