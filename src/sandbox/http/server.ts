import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import express, { type Express, type NextFunction, type Request, type Response } from 'express'

import { AdapterError } from '../../errors.ts'
import { readBody } from '../../http/body.ts'
import { createOrderedServer } from '../../http/reply-order.ts'
import { startListening } from '../../http/server.ts'
import type { Disturbance, FaultPlan } from '../control/faults.ts'
import type { Admit, Principal } from '../security.ts'
import { faultReply, internalError, type Reply } from './reply.ts'
import type { PortService, ServiceRequest } from './request.ts'

export interface PortParts {
  readonly admit: Admit
  /** Answers `POST …/connect/token`, or is `undefined` if the port has no token endpoint. */
  readonly issueToken: ((contentType: string | undefined, body: string) => Reply) | undefined
  readonly service: PortService
  readonly control: express.Router
  readonly maxBodyBytes: number
  readonly faults: FaultPlan
}

const maxFormBytes = 16_384

/** Creates the routes of a port: health and control first, and then the gateway and the data service for all other paths. */
function createApp(parts: PortParts): Express {
  const app = express()
  app.disable('x-powered-by')
  app.disable('etag')
  app.get(['/healthz', '/readyz'], (_request, response) => void response.json({ status: 'ok' }))
  app.use('/_sandbox', parts.control)
  const { issueToken } = parts
  if (issueToken !== undefined) {
    // Accepts any path that ends in `/connect/token`. The real identity service has its own host, so a prefix says nothing here.
    app.post(/\/connect\/token$/i, async (request, response) => {
      const body = await readBody(request, { maxBytes: maxFormBytes, contentEncoding: undefined })
      sendReply(response, issueToken(request.headers['content-type'], body.toString('utf8')))
    })
  }
  app.use((request, response) => serve(parts, request, response))
  // Express recognises an error handler by its four parameters.
  app.use((error: unknown, _request: Request, response: Response, next: NextFunction) => {
    if (response.headersSent) next(error)
    else sendReply(response, replyTo(error))
  })
  return app
}

const replyTo = (error: unknown): Reply => (error instanceof AdapterError ? faultReply(error) : internalError)

async function serve(parts: PortParts, request: Request, response: Response): Promise<void> {
  const admission = parts.admit({
    subscriptionKey: single(request.headers['ocp-apim-subscription-key']),
    authorization: request.headers.authorization,
  })
  if ('refusal' in admission) {
    request.resume()
    sendReply(response, admission.refusal)
    return
  }
  const { principal } = admission
  const disturbance = parts.faults.strike(request.method, request.path)
  if (disturbance === undefined) sendReply(response, await answer(parts, request, principal))
  else await serveDisturbed(parts, request, response, principal, disturbance)
}

async function serveDisturbed(
  parts: PortParts,
  request: Request,
  response: Response,
  principal: Principal,
  disturbance: Disturbance,
): Promise<void> {
  const { loss, latencyMs } = disturbance
  if (latencyMs > 0) await delay(latencyMs)
  if (disturbance.reply !== undefined || loss?.apply === false) {
    // The request is read completely first, so that the client cannot know whether the request was applied.
    await readBody(request, { maxBytes: parts.maxBodyBytes, contentEncoding: undefined })
  }
  if (loss?.apply === false) {
    loseReply(response, loss.how)
    return
  }
  const { resetAfterMs } = disturbance
  const cancelReset = new AbortController()
  if (resetAfterMs !== undefined)
    void delay(resetAfterMs, undefined, { signal: cancelReset.signal }).then(
      () => loseReply(response, 'reset'),
      () => undefined,
    )
  const reply = disturbance.reply ?? (await answer(parts, request, principal, disturbance))
  cancelReset.abort()
  if (response.destroyed) return
  if (loss === undefined) sendDisturbed(response, reply, disturbance)
  else loseReply(response, loss.how)
}

async function answer(
  parts: PortParts,
  request: Request,
  principal: Principal,
  { asOf, paceMs }: Pick<Disturbance, 'asOf' | 'paceMs'> = {},
): Promise<Reply> {
  try {
    const body = await readBody(request, {
      maxBytes: parts.maxBodyBytes,
      contentEncoding: request.headers['content-encoding'],
      contentLength: request.headers['content-length'],
    })
    return await parts.service({ ...addressOf(request), body, principal, asOf, paceMs })
  } catch (error) {
    return replyTo(error)
  }
}

function addressOf(
  request: Request,
): Pick<ServiceRequest, 'method' | 'path' | 'query' | 'header' | 'origin'> {
  const mark = request.url.indexOf('?')
  const encrypted = 'encrypted' in request.socket
  return {
    // Node.js omits the body of the reply to a HEAD request (RFC 9110 9.3.2), so HEAD is answered like GET.
    method: request.method === 'HEAD' ? 'GET' : request.method,
    path: mark < 0 ? request.url : request.url.slice(0, mark),
    query: mark < 0 ? '' : request.url.slice(mark + 1),
    header: (name) => single(request.headers[name]),
    origin: `${encrypted ? 'https' : 'http'}://${request.headers.host ?? ''}`,
  }
}

const single = (value: string | string[] | undefined): string | undefined =>
  Array.isArray(value) ? value.join(', ') : value

export function sendReply(response: ServerResponse, reply: Reply): void {
  // `writeHead` of Node.js is used, because Express would parse and rewrite every content type.
  const length = reply.status === 204 ? {} : { 'Content-Length': Buffer.byteLength(reply.body) }
  response.writeHead(reply.status, { ...reply.headers, ...length })
  response.end(reply.body)
}

function sendDisturbed(response: ServerResponse, reply: Reply, disturbance: Disturbance): void {
  const damaged = disturbance.brokenGzip ? breakGzip(reply) : reply
  const { truncateAt, bytesPerSecond } = disturbance
  if (truncateAt === undefined && bytesPerSecond === undefined) {
    sendReply(response, damaged)
    return
  }
  const body = Buffer.from(damaged.body)
  response.writeHead(damaged.status, { ...damaged.headers, 'Content-Length': body.length })
  const sent = body.subarray(0, truncateAt)
  const end = (): void => {
    if (sent.length < body.length) response.destroy()
    else response.end()
  }
  if (bytesPerSecond === undefined) {
    response.write(sent, end)
    return
  }
  sendSlowly(response, sent, bytesPerSecond, end)
}

/** Compresses the body and corrupts the compressed bytes after the gzip header, so that decoding fails partway. */
function breakGzip(reply: Reply): Reply {
  const body = gzipSync(reply.body)
  // The ten header bytes stay intact (RFC 1952 2.3), so that the stream looks like gzip.
  for (let at = 10; at < body.length; at += 7) body[at] = (body[at] ?? 0) ^ 0xff
  return { ...reply, headers: { ...reply.headers, 'Content-Encoding': 'gzip' }, body }
}

const tickMs = 50

function sendSlowly(response: ServerResponse, body: Buffer, bytesPerSecond: number, end: () => void): void {
  const step = Math.max(1, Math.round((bytesPerSecond * tickMs) / 1000))
  let at = 0
  const timer = setInterval(() => {
    response.write(body.subarray(at, at + step))
    at += step
    if (at < body.length) return
    clearInterval(timer)
    end()
  }, tickMs)
  response.once('close', () => clearInterval(timer))
}

/** Resets the connection, or keeps it open until the client gives up. */
function loseReply(response: ServerResponse, how: 'reset' | 'stall'): void {
  if (how === 'reset') response.socket?.resetAndDestroy()
}

// The limit is high, so that a filter over many learners reaches the limit of the query parser before the limit of the HTTP parser.
const maxHeaderBytes = 131_072
// The idle timeout exceeds the idle timeout of clients. Otherwise a connection could close at the moment in which a client reuses it.
const keepAliveMs = 75_000

/** Creates a port of the service. Port 0 selects a free port. The error about a port in use names `option`. */
export function createHttpPort(
  parts: PortParts,
  { host, port, option }: { host: string; port: number; option: string | undefined },
) {
  const server = createOrderedServer({ maxHeaderSize: maxHeaderBytes }, createApp(parts))
  server.keepAliveTimeout = keepAliveMs
  return {
    /** Starts to listen. Resolves with the base URL without a trailing slash, and the port. Rejects with `ADP_CONFIGURATION` on failure. */
    listen: async () => {
      const taken = await startListening(server, port, host, option)
      return { url: `http://${host.includes(':') ? `[${host}]` : host}:${taken}`, port: taken }
    },
    close: async () => {
      if (!server.listening) return
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}
