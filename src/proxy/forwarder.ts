import type { IncomingMessage, ServerResponse } from 'node:http'

import type { Clock } from '../clock.ts'
import type { WireReply } from '../compare/wire-exchange.ts'
import { AdapterError } from '../errors.ts'
import { bodyArrival, hasBody, isFramed, peekBody, Pieces } from '../http/body.ts'
import { CLIENT_CLOSED, closeSignal } from '../http/server.ts'
import type { Events } from '../observability/events.ts'
import {
  type CallBudget,
  type CallTrace,
  createConnections,
  overloaded,
  type QueueKey,
  type Refusal,
  type ReplyHead,
  type ReplySink,
  StreamCall,
  type UpstreamTimeouts,
} from '../upstream/index.ts'
import type { V3Credentials } from '../v3/index.ts'
import type { ByteBudget, HeldBytes } from './byte-budget.ts'
import { isSafeMethod, lossOf, sendError, slowUploadOf, type UnknownOutcome } from './error-reply.ts'
import { toUpstreamFields } from './forwarded-fields.ts'
import type { LinkRewriting, ReplyLinks } from './link-rewriter.ts'
import { type ReplyOptions, ReplyWriter } from './reply-writer.ts'
import { createStreamProxy, StreamedCall } from './streamed-call.ts'

/** How one request is forwarded. */
export interface ForwardCall {
  /** Whose share of connections and bytes it uses. */
  readonly queueKey: QueueKey
  /** In place of those of the client; default: the client's own. */
  readonly credentials?: V3Credentials
  /** Limits the rate and the time; undefined: it waits for nothing but a connection. */
  readonly budget?: CallBudget
  /** Paths below the upstream's address, and where absolute links to them lead in replies; the last one has the empty path. */
  readonly links?: readonly LinkRewriting[] | undefined
  /** See `ReplyOptions.queryRewritten`; default false. */
  readonly queryRewritten?: boolean
  /** False: only links in header fields change, and no byte of the body. Default true. */
  readonly linksInBody?: boolean
  /** Credentials that the client must not learn from the reply. */
  readonly withheld?: readonly string[]
  /** The body where it was read already: the bytes as they came, without decoding. Any other is sent on as it comes. */
  readonly body?: Buffer | undefined
  /** Where the body was read already, the reply is also read when the client has gone, for `bodyMs` after its head. Default false. */
  readonly keepGoing?: boolean
  /** Bytes of a body that the copy of the reply may have; default 0: no copy is made. */
  readonly captureBytes?: number
  /** Called with the first 64 KiB of a body that is streamed, before the request waits for its turn; nothing is sent where it throws. */
  readonly checkBody?: ((firstBytes: Buffer) => void) | undefined
  /** Called once the request has a connection, right before its first byte is sent; nothing is sent where it throws. */
  readonly beforeSend?: () => void
  /** True: a reply of 401 is returned in place of being sent on, unless it is long. */
  readonly intercepts401?: boolean
  readonly onReplyHead?: (head: ReplyHead) => void
  /** See `ReplyOptions.onWhole`. */
  readonly onReplyEnd?: ReplyOptions['onWhole'] | undefined
}

/** What became of a request. The client has been answered, except where its reply was intercepted. */
export type ForwardOutcome =
  /** The upstream answered, and its whole reply was handed to the client, where it had not gone. */
  | { readonly kind: 'answered'; readonly status: number; readonly reply: WireReply | undefined }
  /** Nothing left for the upstream. */
  | { readonly kind: 'notSent'; readonly error: AdapterError }
  /** It left, or a part of it, and no reply came. */
  | { readonly kind: 'lost'; readonly error: AdapterError }
  /** The reply broke off; the connection of the client was broken off too. */
  | { readonly kind: 'brokenReply'; readonly status: number; readonly error: AdapterError }
  /** `pass` sends the reply on after all. */
  | {
      readonly kind: 'intercepted'
      readonly status: number
      readonly body: Buffer
      readonly pass: () => void
    }

/** Sends requests on to one upstream, and its replies back, both as they are. */
type Forwarder = ReturnType<typeof createForwarder>

/** The requests with a body that are forwarded. */
export type Uploads = WeakMap<IncomingMessage, Upload>

interface Upload {
  readonly outcomeUnknown: UnknownOutcome
  call: OpenCall | undefined
}

/** What a request with a body that was read, and one that is streamed, have in common while they are on their way. */
type OpenCall = Pick<StreamCall, 'abort' | 'isSent' | 'resume'>

export interface ForwarderOptions {
  /** The path of a request is added to its own. */
  readonly baseUrl: URL
  readonly connections: number
  readonly timeouts: UpstreamTimeouts & { readonly bodyMs: number }
  readonly acquireMs?: number | undefined
  /** The code of a write that may have been applied. */
  readonly outcomeUnknown: UnknownOutcome
  /**
   * How long a body is waited for before the request is sent, unless 64 KiB of it are there, ms; undefined: without end. A client
   * that takes its time holds no connection meanwhile.
   */
  readonly arrivalMs: number | undefined
  readonly uploads: Uploads
  readonly byteBudget: ByteBudget
  readonly clock: Clock
  readonly events: Events
  /** Called once for every call that left; `status` is undefined where no reply arrived. */
  readonly onCall: (call: {
    readonly isRead: boolean
    readonly status: number | undefined
    readonly durationMs: number
  }) => void
  /** Begins the span of a call. */
  readonly trace?: (() => CallTrace | undefined) | undefined
  /** Called where a request has no whole reply. */
  readonly onFailure: (reason: 'unreachable' | 'lost' | 'brokenReply') => void
  /** Called where a request gets no connection. */
  readonly onRefusal: (reason: Refusal) => void
}

/** A longer reply of 401 is no error of the gateway. */
const MAX_INTERCEPTED_BYTES = 65_536

/**
 * Creates a forwarder over connections of its own: http-proxy-middleware streams a body, undici carries a request that has none, or whose
 * body was read already. Hop-by-hop fields end here; method, status, end-to-end fields and bytes stay as they are. Where the upstream cannot be reached, the client gets 503
 * `ADP_UPSTREAM_UNAVAILABLE`, for a write that may have left 504 with `outcomeUnknown`; when the upstream dies in the middle of a
 * reply, the client's connection breaks too.
 */
export function createForwarder(options: ForwarderOptions) {
  const { baseUrl, byteBudget, clock, uploads, arrivalMs } = options
  const basePath = baseUrl.pathname.replace(/\/$/, '')
  const target = `${baseUrl.origin}${basePath}`
  const connections = createConnections(baseUrl.origin, options)
  const streams = createStreamProxy(baseUrl, options.timeouts, clock)
  return {
    /** Forwards one request and answers it; rejects where the budget, or the share of its client in memory, lets nothing be sent. */
    forward: async (
      request: IncomingMessage,
      response: ServerResponse,
      call: ForwardCall,
    ): Promise<ForwardOutcome> => {
      const { body, credentials, queueKey, budget } = call
      const held = byteBudget.open(queueKey)
      const upload: Upload = { outcomeUnknown: options.outcomeUnknown, call: undefined }
      const isUpload = body === undefined && isFramed(request)
      try {
        if (isUpload && hasBody(request)) {
          uploads.set(request, upload)
          await bodyArrival(request, (count) => held.take(count), { clock, waitMs: arrivalMs })
        }
        if (isUpload) call.checkBody?.(peekBody(request))
        await budget?.take()
        const links = call.links && {
          rewritings: call.links.map((link) => ({ ...link, from: target + link.from })),
          requested: target + (request.url ?? '/').replace(/\?.*$/s, ''),
        }
        const trace = options.trace?.()
        const fields = toUpstreamFields(request, {
          credentials,
          identity: (links !== undefined && call.linksInBody !== false) || call.queryRewritten === true,
          added: trace?.fields,
        })
        const forwarded = new ForwardedRequest(request, response, call, links, held, options)
        const wait = { queueKey, waitMs: budget?.leftMs() ?? Infinity, signal: () => closeSignal(response) }
        if (isUpload) {
          const { timeouts } = options
          const streamed = new StreamedCall(request, forwarded, {
            fields: ['Host', baseUrl.host, ...fields],
            timeouts,
            clock,
          })
          upload.call = forwarded.follow(streamed)
          const use = (leave: () => void): void => {
            if (streamed.isDone()) leave()
            else streams.send(streamed, response, leave)
          }
          connections.reserve(wait, use, () => streamed.abort(overloaded('connection')))
        } else {
          const posted = new StreamCall(forwarded, (expire) =>
            clock.after(options.timeouts.headersMs, expire),
          )
          forwarded.follow(posted)
          const { method = 'GET', url = '/' } = request
          connections.dispatch(
            { method, path: basePath + url, headers: fields, body: body ?? null },
            posted,
            wait,
          )
        }
        const outcome = await forwarded.outcome
        trace?.end('status' in outcome ? outcome.status : undefined)
        return outcome
      } finally {
        held.release()
      }
    },
    /** Connections in use. */
    held: (): number => connections.held(),
    close: async (): Promise<void> => {
      await connections.close()
      streams.close()
    },
  }
}

/**
 * What to answer when the upload of a request is given up, which ends its call: it may have been applied where a part of it was
 * sent on.
 */
function giveUpUpload(uploads: Uploads, request: IncomingMessage): AdapterError {
  const { call, outcomeUnknown } = uploads.get(request) ?? {}
  const error = slowUploadOf(request.method, call?.isSent() === true, outcomeUnknown)
  // Later: its failure must find the answer that the caller gives now.
  if (call !== undefined) queueMicrotask(() => call.abort(error))
  return error
}

/** One request on its way to the upstream, once it may leave. */
class ForwardedRequest implements ReplySink {
  readonly outcome: Promise<ForwardOutcome>
  private readonly request: IncomingMessage
  private readonly response: ServerResponse
  private readonly options: ForwarderOptions
  private readonly forwardCall: ForwardCall
  private readonly writer: ReplyWriter
  private readonly settle: (outcome: ForwardOutcome) => void
  private call: OpenCall | undefined
  private startedMs = 0
  private isCounted = false
  private head: ReplyHead | undefined
  private intercepted: Pieces | undefined
  private cancelRest: (() => void) | undefined

  constructor(
    request: IncomingMessage,
    response: ServerResponse,
    call: ForwardCall,
    links: ReplyLinks | undefined,
    held: HeldBytes,
    options: ForwarderOptions,
  ) {
    this.request = request
    this.response = response
    this.forwardCall = call
    this.options = options
    const { promise, resolve } = Promise.withResolvers<ForwardOutcome>()
    this.outcome = promise.finally(() => this.cancelRest?.())
    this.settle = resolve
    const { linksInBody = true, queryRewritten = false, withheld = [] } = call
    const { captureBytes = 0, onReplyEnd: onWhole } = call
    const onDrain = (): void => this.call?.resume()
    this.writer = new ReplyWriter(response, {
      ...{ links, linksInBody, queryRewritten, withheld },
      ...{ captureBytes, held, onWhole, onDrain },
    })
  }

  /** Ends the call when its client goes. */
  follow(call: OpenCall): OpenCall {
    const { response } = this
    this.call = call
    if (response.destroyed || response.writableEnded) call.abort(CLIENT_CLOSED)
    else response.once('close', () => this.onClientGone(call))
    return call
  }

  beforeSend(): void {
    this.forwardCall.beforeSend?.()
    this.startedMs = this.options.clock.nowMs()
  }

  onHead(head: ReplyHead): void {
    this.count(head.status)
    this.forwardCall.onReplyHead?.(head)
    if (head.status === 401 && this.forwardCall.intercepts401 === true) this.intercepted = new Pieces()
    else this.writer.start(head)
    this.head = head
    if (this.response.destroyed) this.limitRest()
  }

  onData(chunk: Buffer): boolean {
    const { intercepted } = this
    if (intercepted === undefined) return this.writer.data(chunk)
    intercepted.add(chunk)
    if (intercepted.size <= MAX_INTERCEPTED_BYTES) return true
    return this.passIntercepted(intercepted.join())
  }

  onEnd(): void {
    const { intercepted, head } = this
    if (intercepted === undefined) {
      this.end()
      return
    }
    const body = intercepted.join()
    const pass = (): void => {
      this.passIntercepted(body)
      this.end()
    }
    this.settle({ kind: 'intercepted', status: head?.status ?? 0, body, pass })
  }

  onFailure(cause: Error, sent: boolean): void {
    const { request, response, options, head } = this
    const { method } = request
    if (sent) this.count(undefined)
    const error = cause instanceof AdapterError ? cause : lossOf(method, sent, options.outcomeUnknown, cause)
    // Else the client has gone, or has its answer.
    const isOpen = !response.destroyed && !response.writableEnded
    if (head !== undefined && (this.intercepted === undefined || response.headersSent)) {
      if (isOpen) options.onFailure('brokenReply')
      response.destroy()
      this.settle({ kind: 'brokenReply', status: head.status, error })
      return
    }
    if (isOpen && error !== cause) options.onFailure(sent ? 'lost' : 'unreachable')
    if (isOpen) sendError(response, error, options.events)
    this.settle({ kind: sent ? 'lost' : 'notSent', error })
  }

  private end(): void {
    const status = this.head?.status ?? 0
    try {
      this.writer.end((reply) => this.settle({ kind: 'answered', status, reply }))
    } catch (cause) {
      // Its head cannot be sent.
      this.head = undefined
      this.onFailure(cause instanceof Error ? cause : CLIENT_CLOSED, true)
    }
  }

  private passIntercepted(body: Buffer): boolean {
    this.intercepted = undefined
    if (this.head !== undefined) this.writer.start(this.head)
    return this.writer.data(body)
  }

  /** Counts a call that left, once. */
  private count(status: number | undefined): void {
    if (this.isCounted) return
    this.isCounted = true
    const { clock, onCall } = this.options
    onCall({ isRead: isSafeMethod(this.request.method), status, durationMs: clock.nowMs() - this.startedMs })
  }

  private onClientGone(call: OpenCall): void {
    const { keepGoing, body } = this.forwardCall
    if (keepGoing !== true || body === undefined) {
      call.abort(CLIENT_CLOSED)
      return
    }
    this.writer.drop()
    if (this.head !== undefined) this.limitRest()
  }

  /** Gives up a body that nobody waits for and that does not end: each of its bytes would keep the call open for longer. */
  private limitRest(): void {
    const { clock, timeouts } = this.options
    this.cancelRest = clock.after(timeouts.bodyMs, () => this.call?.abort(CLIENT_CLOSED))
  }
}

/** The forwarders to all base addresses of V2. */
export type Relays = ReturnType<typeof createRelays>

/** With more of them the oldest is forgotten: its calls end as they would, and idle connections close themselves. */
const MAX_RELAYS = 1_000
/** A client that takes longer over its upload than this, or over 64 KiB of it, is streamed to V2 as it comes. */
const ARRIVAL_MS = 100

/** Creates forwarders as they are needed: partners may have a gateway of their own, and a reload may add one. */
export function createRelays(options: Omit<ForwarderOptions, 'baseUrl' | 'outcomeUnknown' | 'arrivalMs'>) {
  const relays = new Map<string, Forwarder>()
  const side = { outcomeUnknown: 'ADP_V2_OUTCOME_UNKNOWN', arrivalMs: ARRIVAL_MS } as const
  return {
    of: (baseUrl: URL): Forwarder => {
      const known = relays.get(baseUrl.href)
      if (known !== undefined) return known
      const [oldest] = relays.size < MAX_RELAYS ? [] : relays.keys()
      if (oldest !== undefined) relays.delete(oldest)
      const relay = createForwarder({ ...options, ...side, baseUrl })
      relays.set(baseUrl.href, relay)
      return relay
    },
    /** What to answer when the upload of a request to V2 or V3 is given up, see `giveUpUpload`. */
    uploadLost: (request: IncomingMessage): AdapterError => giveUpUpload(options.uploads, request),
    /** Connections in use. */
    held: (): number => [...relays.values()].reduce((sum, relay) => sum + relay.held(), 0),
    close: async (): Promise<void> => {
      await Promise.all([...relays.values()].map((relay) => relay.close()))
    },
  }
}
