import {
  createServer,
  type IncomingMessage,
  request as httpRequest,
  type Server,
  type ServerResponse,
} from 'node:http'
import { request as httpsRequest } from 'node:https'
import type { Readable } from 'node:stream'

import type { WireExchange } from '../../compare/wire-exchange.ts'
import { endToEndFields } from '../../http/hop-by-hop.ts'
import { MAX_HEADER_BYTES } from '../../http/server.ts'

interface RelayOptions {
  /** The address of V2. */
  readonly v2: URL
  /** Whether a request is recorded, by its method and target; others are relayed and not copied. */
  readonly isRecorded: (method: string, target: string) => boolean
  /** Takes an exchange when its client has the reply; must not throw. */
  readonly onExchange: (exchange: WireExchange) => void
  /** Larger bodies are relayed and not copied. */
  readonly maxCopyBytes: number
}

/** Creates a server that sends each request on to V2 as it came, and V2's reply back, and copies what passes. */
export function createRecordingRelay(options: RelayOptions): Server {
  const server = createServer({ maxHeaderSize: MAX_HEADER_BYTES, requireHostHeader: false })
  // V2 decides: a batch may take minutes.
  server.requestTimeout = 0
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    relay(request, response, options)
  })
  return server
}

function relay(request: IncomingMessage, response: ServerResponse, options: RelayOptions): void {
  const { v2, isRecorded, onExchange, maxCopyBytes } = options
  const receivedMs = Date.now()
  const { method = 'GET', url = '/' } = request
  const isCopied = isRecorded(method, url)
  const sent = isCopied ? copyOf(request, maxCopyBytes) : undefined
  const fields = withHost(endToEndFields(request.rawHeaders), v2.host)
  const send = v2.protocol === 'https:' ? httpsRequest : httpRequest
  const upstream = send({
    protocol: v2.protocol,
    hostname: v2.hostname.replace(/^\[|\]$/g, ''),
    port: v2.port,
    method,
    path: v2.pathname.replace(/\/$/, '') + url,
    headers: fields,
    setDefaultHeaders: false,
  })
  // Without a length the body goes on as it came: in chunks.
  if (request.headers['transfer-encoding'] !== undefined) upstream.setHeader('Transfer-Encoding', 'chunked')
  upstream.on('response', (reply) => {
    const received = isCopied ? copyOf(reply, maxCopyBytes) : undefined
    const { statusCode: status = 502, statusMessage: reason = '' } = reply
    response.writeHead(status, reason, endToEndFields(reply.rawHeaders))
    reply.pipe(response)
    reply.on('error', () => response.destroy())
    reply.on('aborted', () => response.destroy())
    response.on('finish', () => {
      if (sent === undefined || received === undefined) return
      onExchange({
        method,
        target: url,
        request: { fields: request.rawHeaders, body: sent() },
        reply: { status, reason, fields: reply.rawHeaders, body: received() },
        served: 'v2',
        receivedMs,
        durationMs: Date.now() - receivedMs,
      })
    })
  })
  upstream.on('error', () => {
    // Nothing of V2's reply has gone out yet, or the client sees that it is cut off.
    if (response.headersSent) response.destroy()
    else response.writeHead(502, { 'Content-Type': 'text/plain' }).end('V2 cannot be reached.\n')
  })
  response.on('close', () => {
    if (!response.writableFinished) upstream.destroy()
  })
  request.pipe(upstream)
}

/** V2 may serve several names at one address. */
function withHost(fields: readonly string[], host: string): string[] {
  const others = fields.filter((_part, at) => fields[at - (at % 2)]?.toLowerCase() !== 'host')
  return ['Host', host, ...others]
}

/** Copies what a stream gives; undefined where it was more than allowed. */
function copyOf(stream: Readable, maxBytes: number): () => Buffer | undefined {
  let pieces: Buffer[] | undefined = []
  let size = 0
  stream.on('data', (chunk: Buffer) => {
    size += chunk.length
    if (size > maxBytes) pieces = undefined
    else pieces?.push(chunk)
  })
  return () => pieces && Buffer.concat(pieces)
}
