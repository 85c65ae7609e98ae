import { Agent as HttpAgent, type ClientRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'

import { createProxyMiddleware, proxyEventsPlugin } from 'http-proxy-middleware'

import type { Clock } from '../clock.ts'
import { isFramed } from '../http/body.ts'
import {
  createConnectionTo,
  ReplyFields,
  type ReplySink,
  type UpstreamRoute,
  type UpstreamTimeouts,
} from '../upstream/index.ts'

/**
 * The property of a request by which the hooks of the library find its call. With a map in its place, garbage collection took a third of
 * the processor time.
 */
const CALL = Symbol('call')
type CarryingRequest = IncomingMessage & { [CALL]?: StreamedCall | undefined }

/**
 * The idle timeout of a connection in milliseconds. It is shorter than the timeouts of gateways, because a call has an unknown outcome if
 * the gateway closes its connection meanwhile.
 */
const IDLE_MS = 4_000

/** Creates a proxy over http-proxy-middleware. The library opens a connection whenever none is idle, so the caller must limit the calls. */
export function createStreamProxy(baseUrl: URL, { connectMs }: UpstreamTimeouts, route?: UpstreamRoute) {
  const agent = createAgent(baseUrl, connectMs, route)
  const fail = (cause: Error, request: CarryingRequest): void => request[CALL]?.abort(cause)
  const middleware = createProxyMiddleware<CarryingRequest>({
    target: baseUrl,
    agent,
    // Lets this code pass the reply on. The library would write the names of reply fields in lower case and join repeated fields.
    selfHandleResponse: true,
    // The default plugins of the library log targets and show them on an error page.
    ejectPlugins: true,
    plugins: [proxyEventsPlugin],
    on: {
      proxyReq: (upstream, request) => {
        const call = request[CALL]
        // The call ended while its connection was being opened, so nothing is sent.
        if (call === undefined) upstream.once('close', () => request.resume()).destroy()
        else call.begin(upstream)
      },
      proxyRes: (reply, request) => request[CALL]?.answer(reply),
      error: fail,
      // The library emits this event in place of `error` if the client closed its side after the request.
      econnreset: fail,
    },
  })
  return {
    /** Sends a call. A request may have only one call at a time. `leave` is called once, when the call no longer needs its connection. */
    send: (call: StreamedCall, response: ServerResponse, leave: () => void): void => {
      const request: CarryingRequest = call.request
      request[CALL] = call
      call.onDone = () => {
        request[CALL] = undefined
        leave()
      }
      // The server has already answered `Expect`. If this field stayed, the library would send the request without calling a hook first.
      if (request.headers.expect !== undefined) Reflect.deleteProperty(request.headers, 'expect')
      const failed = (cause: unknown): void => call.abort(toError(cause))
      middleware(request, response, failed).catch(failed)
    },
    close: (): void => agent.destroy(),
  }
}

/** Creates an agent that provides connections only once they are open, so that `proxyReq` runs immediately before the first byte. */
function createAgent(baseUrl: URL, connectMs: number, route: UpstreamRoute | undefined): HttpAgent {
  const options = { keepAlive: true, timeout: IDLE_MS }
  const agent = baseUrl.protocol === 'https:' ? new HttpsAgent(options) : new HttpAgent(options)
  return Object.assign(agent, { createConnection: createConnectionTo(baseUrl, connectMs, route) })
}

interface StreamedCallOptions {
  /** The header fields for the upstream, as alternating names and values. */
  readonly fields: readonly string[]
  readonly timeouts: UpstreamTimeouts & { readonly bodyMs: number }
  readonly clock: Clock
}

/** Follows one request through the hooks of a stream proxy and passes its reply to a sink. Drops interim responses and trailers. */
export class StreamedCall {
  readonly request: IncomingMessage
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

  /** Starts the call on an open connection, on which nothing has been sent yet. */
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
    // The library reports neither a connection that closes before the reply nor a connection that is upgraded.
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
    // This listener must come before the listeners of the library, which close the client's connection without an error.
    reply.once('error', (cause) => this.abort(cause))
    reply.once('close', () => {
      if (!this.done) this.abort(lost('The connection was closed during a reply.'))
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
      // A reply to HEAD has no body. If the service sends a body, the body is discarded.
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

  /** Restarts the timeout for the head of the reply. Each piece of an upload restarts it too, because the service is still reading. */
  private readonly awaitHead = (): void => {
    this.await(this.options.timeouts.headersMs, 'The service did not send a status line in time.')
  }

  private awaitBody(): void {
    this.await(this.options.timeouts.bodyMs, 'The service paused for too long during its reply.')
  }

  private await(ms: number, message: string): void {
    this.cancelTimer?.()
    this.cancelTimer = this.options.clock.after(ms, () => this.abort(lost(message)))
  }

  /** Replaces the fields that the library set. The library joins repeated fields, and closes the connection after a chunked body. */
  private setFields(upstream: ClientRequest): void {
    const { fields } = this.options
    const { request } = this
    for (const name of upstream.getHeaderNames()) upstream.removeHeader(name)
    for (let at = 0; at + 1 < fields.length; at += 2)
      upstream.appendHeader(fields[at] ?? '', fields[at + 1] ?? '')
    if (isFramed(request) && request.headers['content-length'] === undefined)
      upstream.setHeader('Transfer-Encoding', 'chunked')
    // If a service sends a body in reply to HEAD, the connection would read that body as the next reply.
    if (request.method === 'HEAD') upstream.setHeader('Connection', 'close')
  }

  private finish(): void {
    this.done = true
    this.cancelTimer?.()
    this.request.off('data', this.awaitHead)
    this.onDone?.()
  }

  /** Closes the connection to the upstream. Discards the rest of an upload, because many clients read a reply only after their upload. */
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
