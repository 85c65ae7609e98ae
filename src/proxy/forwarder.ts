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
  type UpstreamRoute,
  type UpstreamTimeouts,
} from '../upstream/index.ts'
import type { V3Credentials } from '../v3/index.ts'
import type { ByteBudget, HeldBytes } from './byte-budget.ts'
import {
  isSafeMethod,
  lostReplyError,
  sendError,
  slowUploadError,
  type UnknownOutcome,
} from './error-reply.ts'
import { toUpstreamFields } from './forwarded-fields.ts'
import type { LinkRewriting, ReplyLinks } from './link-rewriter.ts'
import { type ReplyOptions, ReplyWriter } from './reply-writer.ts'
import { createStreamProxy, StreamedCall } from './streamed-call.ts'

export interface ForwardCall {
  /** The client whose share of connections and memory the request uses. */
  readonly queueKey: QueueKey
  /** The credentials for the upstream. Default: the client's own. */
  readonly credentials?: V3Credentials
  /** Limits the rate of calls and the time. If `undefined`, the request waits only for a connection. */
  readonly budget?: CallBudget
  /** The replacements for absolute links below the upstream's address. Each `from` is a path; the last is empty and matches every link. */
  readonly links?: readonly LinkRewriting[] | undefined
  /** True if the query differs from the client's (see `ReplyOptions`). Default: false. */
  readonly queryRewritten?: boolean
  /** True to rewrite links in the body too, and not only in header fields. Default: true. */
  readonly linksInBody?: boolean
  /** The credentials that the reply must not reveal to the client. */
  readonly withheld?: readonly string[]
  /** The raw body, if it was already read. If `undefined`, the body is streamed. */
  readonly body?: Buffer | undefined
  /** True to read the reply to its end after the client has disconnected. Applies only with `body`. Default: false. */
  readonly keepGoing?: boolean
  /** The maximum size in bytes of the copy of the reply's body. Default: 0, for no copy. */
  readonly captureBytes?: number
  /** Called with the first 64 KiB of a streamed body, before the request waits for its turn. If it throws, nothing is sent. */
  readonly checkBody?: ((firstBytes: Buffer) => void) | undefined
  /** Called when the request has a connection, immediately before its first byte is sent. If it throws, nothing is sent. */
  readonly beforeSend?: () => void
  /** True to return a 401 reply to the caller and not to the client, unless it is longer than `MAX_INTERCEPTED_BYTES`. */
  readonly intercepts401?: boolean
  readonly onReplyHead?: (head: ReplyHead) => void
  readonly onReplyEnd?: ReplyOptions['onWhole'] | undefined
}

/** The outcome of a forwarded request. The client has its answer, unless the reply was intercepted. */
export type ForwardOutcome =
  /** The upstream answered. Its whole reply was written to the client, if the client was still connected. */
  | { readonly kind: 'answered'; readonly status: number; readonly reply: WireReply | undefined }
  | { readonly kind: 'notSent'; readonly error: AdapterError }
  /** At least a part of the request was sent, and no reply arrived. */
  | { readonly kind: 'lost'; readonly error: AdapterError }
  /** The reply was cut off. The client's connection was closed too. */
  | { readonly kind: 'brokenReply'; readonly status: number; readonly error: AdapterError }
  /** The reply was a 401 and has not been sent to the client. `pass` sends it after all. */
  | {
      readonly kind: 'intercepted'
      readonly status: number
      readonly body: Buffer
      readonly pass: () => void
    }

type Forwarder = ReturnType<typeof createForwarder>

export type Uploads = WeakMap<IncomingMessage, Upload>

interface Upload {
  readonly outcomeUnknown: UnknownOutcome
  call: OpenCall | undefined
}

type OpenCall = Pick<StreamCall, 'abort' | 'isSent' | 'resume'>

export interface ForwarderOptions {
  /** The address of the upstream. The path of each request is appended to its path. */
  readonly baseUrl: URL
  readonly connections: number
  readonly timeouts: UpstreamTimeouts & { readonly bodyMs: number }
  readonly route?: UpstreamRoute | undefined
  readonly acquireMs?: number | undefined
  readonly outcomeUnknown: UnknownOutcome
  /**
   * The time in milliseconds that the forwarder waits for a body, or for its first 64 KiB, before it sends the request. Until then a slow
   * client holds no connection. If `undefined`, the wait has no limit.
   */
  readonly arrivalMs: number | undefined
  readonly uploads: Uploads
  readonly byteBudget: ByteBudget
  readonly clock: Clock
  readonly events: Events
  /** Called once for every call that was sent. `status` is `undefined` if no reply arrived. */
  readonly onCall: (call: {
    readonly isRead: boolean
    readonly status: number | undefined
    readonly durationMs: number
  }) => void
  readonly trace?: (() => CallTrace | undefined) | undefined
  readonly onFailure: (reason: 'unreachable' | 'lost' | 'brokenReply') => void
  readonly onRefusal: (reason: Refusal) => void
}

/** Maximum size in bytes of a 401 reply that is intercepted. A longer reply is not an error of the gateway. */
const MAX_INTERCEPTED_BYTES = 65_536

/**
 * Creates a forwarder with connections of its own. The forwarder changes header fields by `toUpstreamFields` and `toClientFields`, and
 * otherwise only what `ForwardCall` asks for. http-proxy-middleware streams bodies. undici sends requests without a body, or with a body
 * that was already read. If the upstream cannot be reached, the client gets 503 `ADP_UPSTREAM_UNAVAILABLE`. If a write may have been sent,
 * the client gets 504 with the code `outcomeUnknown`. If a reply of the upstream is cut off, the client's connection is closed too.
 */
export function createForwarder(options: ForwarderOptions) {
  const { baseUrl, byteBudget, clock, uploads, arrivalMs } = options
  const basePath = baseUrl.pathname.replace(/\/$/, '')
  const target = `${baseUrl.origin}${basePath}`
  const connections = createConnections(baseUrl.origin, options)
  const streams = createStreamProxy(baseUrl, options.timeouts, options.route)
  return {
    /**
     * Forwards one request and answers it. Rejects, with nothing sent, if the call budget or share of memory is used up or `checkBody`
     * throws.
     */
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
    held: (): number => connections.held(),
    close: async (): Promise<void> => {
      await connections.close()
      streams.close()
    },
  }
}

/** Returns the error for an upload that is abandoned. If a part of a write was sent, the error says that the write may have been applied. */
function abortUpload(uploads: Uploads, request: IncomingMessage): AdapterError {
  const { call, outcomeUnknown } = uploads.get(request) ?? {}
  const error = slowUploadError(request.method, call?.isSent() === true, outcomeUnknown)
  // The call is aborted only after the caller has sent this error. Otherwise the failure of the call would answer the client first.
  if (call !== undefined) queueMicrotask(() => call.abort(error))
  return error
}

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
    const error =
      cause instanceof AdapterError ? cause : lostReplyError(method, sent, options.outcomeUnknown, cause)
    // Reports and answers the failure only if the client is still connected and was not answered yet.
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
      // Treats the reply as lost if Node.js refuses to send its head.
      this.head = undefined
      this.onFailure(cause instanceof Error ? cause : CLIENT_CLOSED, true)
    }
  }

  private passIntercepted(body: Buffer): boolean {
    this.intercepted = undefined
    if (this.head !== undefined) this.writer.start(this.head)
    return this.writer.data(body)
  }

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

  /** Limits the time for the rest of a reply whose client has disconnected. Otherwise a reply without an end would keep the call open. */
  private limitRest(): void {
    const { clock, timeouts } = this.options
    this.cancelRest = clock.after(timeouts.bodyMs, () => this.call?.abort(CLIENT_CLOSED))
  }
}

export type Relays = ReturnType<typeof createRelays>

/** Maximum number of forwarders. Beyond it the oldest is evicted: its calls finish normally, and its idle connections time out. */
const MAX_RELAYS = 1_000
/** Time in milliseconds that a forwarder to V2 waits for a body (`arrivalMs`). A slower upload is streamed to V2 as it arrives. */
const ARRIVAL_MS = 100

/** Creates forwarders on demand, one for each address, because each partner may have its own gateway and a reload may add one. */
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
    /** Returns the error for the client whose upload to V2 or V3 is abandoned. */
    abandonUpload: (request: IncomingMessage): AdapterError => abortUpload(options.uploads, request),
    held: (): number => [...relays.values()].reduce((sum, relay) => sum + relay.held(), 0),
    close: async (): Promise<void> => {
      await Promise.all([...relays.values()].map((relay) => relay.close()))
    },
  }
}
