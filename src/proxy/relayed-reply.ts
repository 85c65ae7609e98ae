import { type IncomingMessage, type ServerResponse, validateHeaderValue } from 'node:http'

import { AdapterError } from '../errors.ts'
import type { CapturedReply, RelayedHead, ReplyCapture } from './captured-reply.ts'
import { endJoined } from './end-joined.ts'
import type { LinkRewriter } from './link-rewriter.ts'
import type { RelayedFields } from './relayed-fields.ts'

export interface RelayedReplyOptions {
  readonly fields: RelayedFields
  /** Undefined: links stay as they are. */
  readonly createRewriter: (() => LinkRewriter) | undefined
  readonly onHead: ((head: RelayedHead) => void) | undefined
  /** Called once all of it has come from V2. */
  readonly onReceived: () => void
  readonly capture: ReplyCapture | undefined
  /** Called with the whole reply; its last bytes wait for what it returns. */
  readonly onWhole: ((reply: CapturedReply) => void | Promise<void>) | undefined
  /** Called once, when all of it was handed to the client. */
  readonly onEnd: (reply: CapturedReply | undefined) => void
}

/**
 * Sends a reply of V2 on as it comes: status line, fields, bytes and trailers. Where its copy must be kept before the client has
 * all of it, the last piece is held back until then.
 */
export class RelayedReply {
  private readonly message: IncomingMessage
  private readonly request: IncomingMessage
  private readonly response: ServerResponse
  private readonly options: RelayedReplyOptions
  private head: RelayedHead = { status: 0, reason: '', fields: [] }
  private isChunked = false
  /** Set while the head waits for the length of a body whose links change: where `Content-Length` stands, or -1. */
  private openHead: { readonly fields: string[]; readonly lengthAt: number } | undefined
  private rewriter: LinkRewriter | undefined
  private heldBack: Buffer | undefined
  private hasBytesSent = false
  private waitsForDrain = false

  constructor(
    message: IncomingMessage,
    request: IncomingMessage,
    response: ServerResponse,
    options: RelayedReplyOptions,
  ) {
    this.message = message
    this.request = request
    this.response = response
    this.options = options
  }

  get status(): number {
    return this.head.status
  }

  /** True while the client does not read: V2 is not the cause of silence then. */
  get isPaused(): boolean {
    return this.waitsForDrain
  }

  /** Throws for a status line or a field that cannot be sent. */
  start(): void {
    const { message, response, options } = this
    const { fields, lengthAt, isChunked, isPlainJson, keepAlive } = options.fields.toClient(
      message,
      this.request,
    )
    // The agent reads this field once the reply has ended: Node would otherwise parse all of them for it.
    message.headers = keepAlive === undefined ? {} : { 'keep-alive': keepAlive }
    const { statusCode: status = 0, statusMessage: reason = '' } = message
    this.head = { status, reason, fields }
    this.isChunked = isChunked
    // Only fields of V2 go to the client.
    response.sendDate = false
    if (options.createRewriter !== undefined && isPlainJson) {
      checkStatusLine(status, reason)
      this.rewriter = options.createRewriter()
      this.openHead = { fields, lengthAt }
    } else if (!response.destroyed) {
      response.writeHead(status, reason, fields)
    }
    options.onHead?.(this.head)
    message.on('data', (chunk: Buffer) => this.data(chunk))
    message.on('end', () => {
      this.end()
      options.onReceived()
    })
    // A body that has arrived with the head goes out with it, in one write.
    if (this.openHead === undefined) queueMicrotask(() => this.flushHead())
  }

  /** Lets V2 go on although the client has gone. */
  drop(): void {
    this.waitsForDrain = false
    this.message.resume()
  }

  private flushHead(): void {
    const { response, options } = this
    if (this.hasBytesSent || response.destroyed || response.writableEnded) return
    if (options.onWhole === undefined || !this.message.complete) response.flushHeaders()
  }

  private data(chunk: Buffer): void {
    const { rewriter, message } = this
    const isWhole = this.openHead !== undefined && message.complete && message.readableLength === 0
    const bytes = rewriter === undefined ? chunk : rewriter.write(chunk, isWhole)
    if (isWhole) this.rewriter = undefined
    if (this.openHead !== undefined) this.sendHead(isWhole ? bytes.length : undefined)
    this.pass(bytes)
  }

  private pass(bytes: Buffer): void {
    if (bytes.length === 0) return
    this.options.capture?.add(bytes)
    // The last piece ends the response: one write less.
    const isLast = this.message.complete && this.message.readableLength === 0
    if (this.options.onWhole === undefined && !isLast && this.heldBack === undefined) {
      this.write(bytes)
      return
    }
    const before = this.heldBack
    this.heldBack = bytes
    if (before !== undefined) this.write(before)
  }

  private write(bytes: Buffer): void {
    const { response } = this
    if (response.destroyed) return
    this.hasBytesSent = true
    if (response.write(bytes) || this.waitsForDrain) return
    this.waitsForDrain = true
    this.message.pause()
    response.once('drain', () => this.drop())
  }

  private end(): void {
    const { message, response, options, rewriter } = this
    const rest = rewriter?.end()
    // Without a body the length is that of another reply, whose links change: it is not known here.
    if (this.openHead !== undefined) this.sendHead(undefined)
    if (rest !== undefined) this.pass(rest)
    const trailers = this.isChunked ? options.fields.trailersOf(message) : []
    const captured = options.capture?.take(this.head, trailers)
    const finish = (): void => {
      if (!response.destroyed) {
        if (trailers.length > 0) response.addTrailers(trailers)
        endJoined(response, this.heldBack)
      }
      options.onEnd(captured)
    }
    const kept = captured === undefined ? undefined : options.onWhole?.(captured)
    if (kept === undefined) finish()
    else void kept.then(finish, finish)
  }

  /** Sends the head with the length of the body; undefined: it is not known before the end. */
  private sendHead(length: number | undefined): void {
    const { openHead, response } = this
    this.openHead = undefined
    if (openHead === undefined) return
    const { fields, lengthAt } = openHead
    if (lengthAt !== -1) {
      if (length === undefined) fields.splice(lengthAt, 2)
      else fields[lengthAt + 1] = String(length)
    }
    if (!response.destroyed) response.writeHead(this.head.status, this.head.reason, fields)
  }
}

/** Node checks a status line when it is written, here that is later. */
function checkStatusLine(status: number, reason: string): void {
  validateHeaderValue('reason', reason)
  if (status < 100 || status > 999)
    throw new AdapterError('ADP_UPSTREAM_PROTOCOL', 'The service sent no valid status.')
}
