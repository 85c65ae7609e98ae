import { Agent as HttpAgent, type ClientRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'

import { createProxyMiddleware, proxyEventsPlugin } from 'http-proxy-middleware'

import type { Clock } from '../clock.ts'
import { isFramed } from '../http/body.ts'
import { ReplyFields, type ReplySink, type UpstreamTimeouts } from '../upstream/index.ts'

/** The hooks of the library find a call at its request: the collector would spend a third of the time on a map of requests. */
const CALL = Symbol('call')
type CarryingRequest = IncomingMessage & { [CALL]?: StreamedCall | undefined }

/**
 * Idle connections are dropped after this time, below the idle time of usual gateways: one that closes at the moment of its reuse costs a
 * request whose outcome is unknown.
 */
const IDLE_MS = 4_000

/** Creates a proxy over http-proxy-middleware, which opens a connection where none is idle: its caller bounds how many calls it has. */
export function createStreamProxy(baseUrl: URL, { connectMs }: UpstreamTimeouts, clock: Clock) {
  const agent = createAgent(baseUrl.protocol === 'https:', connectMs, clock)
  const fail = (cause: Error, request: CarryingRequest): void => request[CALL]?.abort(cause)
  const middleware = createProxyMiddleware<CarryingRequest>({
    target: baseUrl,
    agent,
    // The library would write the fields of a reply by their lower-case names, and join its repeated ones.
    selfHandleResponse: true,
    // The default plugins log targets, and show them in a page of their own.
    ejectPlugins: true,
    plugins: [proxyEventsPlugin],
    on: {
      proxyReq: (upstream, request) => {
        const call = request[CALL]
        // It ended while its connection was being made.
        if (call === undefined) upstream.once('close', () => request.resume()).destroy()
        else call.begin(upstream)
      },
      proxyRes: (reply, request) => request[CALL]?.answer(reply),
      error: fail,
      // As `error`, where the client has closed its side after its request.
      econnreset: fail,
    },
  })
  return {
    /** Sends a call, of which a request has one at a time; `leave` is called once, when it needs its connection no longer. */
    send: (call: StreamedCall, response: ServerResponse, leave: () => void): void => {
      const request: CarryingRequest = call.request
      request[CALL] = call
      call.onDone = () => {
        request[CALL] = undefined
        leave()
      }
      // The server has answered it; with it, the library calls no hook before it sends the request.
      if (request.headers.expect !== undefined) Reflect.deleteProperty(request.headers, 'expect')
      const failed = (cause: unknown): void => call.abort(toError(cause))
      middleware(request, response, failed).catch(failed)
    },
    /** Closes all connections. */
    close: (): void => agent.destroy(),
  }
}

/** Creates an agent that gives out connections once they are open: the hook `proxyReq` is then right before the first byte. */
function createAgent(isSecure: boolean, connectMs: number, clock: Clock): HttpAgent {
  const options = { keepAlive: true, timeout: IDLE_MS }
  const agent = isSecure ? new HttpsAgent(options) : new HttpAgent(options)
  const open = agent.createConnection.bind(agent)
  agent.createConnection = (target, done) => {
    const socket = open(target)
    if (!socket) return socket
    const onError = (cause: Error): void => {
      cancel()
      done?.(cause, socket)
    }
    const cancel = clock.after(connectMs, () => {
      socket.destroy(lost('No connection was made in time.'))
    })
    socket.once('error', onError).once(isSecure ? 'secureConnect' : 'connect', () => {
      cancel()
      socket.off('error', onError)
      done?.(null, socket)
    })
    return undefined
  }
  return agent
}

interface StreamedCallOptions {
  /** The fields of the request for the upstream: name, value, name, value. */
  readonly fields: readonly string[]
  readonly timeouts: UpstreamTimeouts & { readonly bodyMs: number }
  readonly clock: Clock
}

/** Follows one request through the hooks of a `StreamProxy`, and gives its reply to a sink. Interim responses and trailers end here. */
export class StreamedCall {
  readonly request: IncomingMessage
  /** Called once, at its end. */
  onDone: (() => void) | undefined
  private readonly sink: ReplySink
  private readonly options: StreamedCallOptions
  private upstream: ClientRequest | undefined
  private reply: IncomingMessage | undefined
  private sent = false
  private done = false
  private cancelTimer: (() => void) | undefined

  constructor(request: IncomingMessage, sink: ReplySink, options: StreamedCallOptions) {
    this.request = request
    this.sink = sink
    this.options = options
  }

  isDone(): boolean {
    return this.done
  }

  isSent(): boolean {
    return this.sent
  }

  /** Ends the call; the sink gets the cause as a failure. */
  abort(cause: Error): void {
    if (this.done) return
    this.finish()
    this.sink.onFailure(cause, this.sent)
    this.giveUp()
  }

  resume(): void {
    if (this.done) return
    this.awaitBody()
    this.reply?.resume()
  }

  /** The call has an open connection, on which nothing was sent yet. */
  begin(upstream: ClientRequest): void {
    this.upstream = upstream
    try {
      this.sink.beforeSend()
      this.setFields(upstream)
    } catch (cause) {
      this.abort(toError(cause))
      return
    }
    this.sent = true
    // The library reports no connection that closes in place of a reply, nor one that is upgraded.
    upstream.once('close', () => {
      if (this.reply === undefined) this.abort(lost('The connection was closed without a reply.'))
    })
    this.awaitHead()
    this.request.on('data', this.awaitHead)
  }

  answer(reply: IncomingMessage): void {
    if (this.done) return
    const { sink, request } = this
    const { statusCode: status = 0, statusMessage: reason = '', rawHeaders } = reply
    this.reply = reply
    request.off('data', this.awaitHead)
    this.awaitBody()
    // Before the listeners of the library, which break the connection of the client without a word.
    reply.once('error', (cause) => this.abort(cause))
    reply.once('close', () => {
      if (!this.done) this.abort(lost('The connection was closed in the middle of a reply.'))
    })
    try {
      sink.onHead({ status, reason, fields: new ReplyFields(rawHeaders) })
    } catch (cause) {
      this.abort(toError(cause))
      return
    }
    const end = (): void => {
      if (this.done) return
      this.finish()
      sink.onEnd()
    }
    if (request.method === 'HEAD') {
      // What a service sends as a body all the same is no reply to anything.
      reply.resume()
      end()
      return
    }
    reply.on('data', (chunk: Buffer) => {
      if (this.done) return
      if (sink.onData(chunk)) this.awaitBody()
      else this.pause()
    })
    reply.once('end', end)
  }

  private pause(): void {
    this.cancelTimer?.()
    this.reply?.pause()
  }

  /** A service that reads an upload is waited for. */
  private readonly awaitHead = (): void => {
    this.await(this.options.timeouts.headersMs, 'The service sent no status line in time.')
  }

  private awaitBody(): void {
    this.await(this.options.timeouts.bodyMs, 'The service paused for too long in its reply.')
  }

  private await(ms: number, message: string): void {
    this.cancelTimer?.()
    this.cancelTimer = this.options.clock.after(ms, () => this.abort(lost(message)))
  }

  /** Replaces the fields that the library took from the request: it joins repeated ones, and closes the connection after chunks. */
  private setFields(upstream: ClientRequest): void {
    const { fields } = this.options
    const { request } = this
    for (const name of upstream.getHeaderNames()) upstream.removeHeader(name)
    for (let at = 0; at + 1 < fields.length; at += 2)
      upstream.appendHeader(fields[at] ?? '', fields[at + 1] ?? '')
    if (isFramed(request) && request.headers['content-length'] === undefined)
      upstream.setHeader('Transfer-Encoding', 'chunked')
    // A body that a service sends to HEAD all the same would be taken for the next reply.
    if (request.method === 'HEAD') upstream.setHeader('Connection', 'close')
  }

  private finish(): void {
    this.done = true
    this.cancelTimer?.()
    this.request.off('data', this.awaitHead)
    this.onDone?.()
  }

  /** Closes the connection; the rest of an upload is read and dropped, so that its client gets its answer. */
  private giveUp(): void {
    const { upstream, request } = this
    const drop = (): void => {
      request.unpipe()
      request.resume()
    }
    upstream?.once('close', drop).destroy()
    drop()
  }
}

const lost = (message: string): Error => new DOMException(message, 'NetworkError')

const toError = (cause: unknown): Error =>
  cause instanceof Error ? cause : lost('The request was not forwarded.')
