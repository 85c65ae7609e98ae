import {
  createServer as createHttpServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerOptions,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'

import { createSecureServer, rawSocketOf, type ServerTls } from './secure-server.ts'

/** A fault on a connection: the server received bytes that it cannot handle as a request. */
export interface ConnectionFault {
  readonly status: number
  /** The number of earlier requests whose replies are sent before the answer to the fault. */
  readonly owed: number
}

interface ListenerOptions {
  /** The certificate of the server, which then accepts only https. Default: plain HTTP. */
  readonly tls?: ServerTls | undefined
  /** Called when a TLS handshake fails. The connection is closed without an answer. */
  readonly onHandshakeFailure?: (failure: HandshakeFailure) => void
  /** Maximum number of open connections. Default: no limit. */
  readonly maxConnections?: number | undefined
  /**
   * Called when a connection is closed because too many are open: an `idle` connection, or the `new` one if no other connection is idle.
   */
  readonly onCrowded?: (closed: 'idle' | 'new') => void
  readonly onFault?: (fault: ConnectionFault) => void
  /** Called for a fault in the middle of a request body, before the server answers the fault. May send the reply to the request itself. */
  readonly onCutOff?: (request: IncomingMessage, response: ServerResponse) => void
}

/** A connection that was closed before its TLS handshake was complete. `code` is the error code of Node.js or OpenSSL. */
export interface HandshakeFailure {
  readonly reason: 'plainHttp' | 'timeout' | 'other'
  readonly code: string
}

interface Connection {
  /** The unsent replies in the order of their requests. A request whose body is still arriving has its reply here too. */
  readonly replies: Set<ServerResponse>
  /** True once the server ignores further bytes. */
  isClosing: boolean
  isFaulty: boolean
}

/**
 * Creates an HTTP server that sends whole replies in the order of the requests (RFC 9112 9.3.2, batch-wire F33). The server does not listen
 * yet. Node.js reports a fault (invalid HTTP, a request that arrives too slowly, or CONNECT) at once, even if earlier requests have no
 * reply yet. The server answers the fault after those replies, and then closes the connection.
 */
export function createOrderedServer(
  options: ServerOptions,
  listener: RequestListener,
  hooks: ListenerOptions = {},
): Server {
  const connections = new WeakMap<Duplex, Connection>()
  /** The connections without a request that waits for its reply. The connection that has been idle for the longest time comes first. */
  const idle = new Set<Duplex>()
  const connectionOf = (socket: Duplex): Connection => {
    const known = connections.get(socket)
    if (known !== undefined) return known
    const connection = { replies: new Set<ServerResponse>(), isClosing: false, isFaulty: false }
    connections.set(socket, connection)
    socket.once('close', () => setImmediate(closeForgotten, connection.replies))
    return connection
  }
  const onRequest: RequestListener = (request, response) => {
    const connection = connectionOf(request.socket)
    if (connection.isClosing) return
    const { replies } = connection
    replies.add(response)
    idle.delete(request.socket)
    response.once('close', () => {
      if (request.complete) replies.delete(response)
      if (replies.size === 0 && !request.socket.destroyed) idle.add(request.socket)
    })
    if (isMisframed(request)) {
      connection.isClosing = true
      response.shouldKeepAlive = false
    }
    listener(request, response)
  }
  const { tls, maxConnections = Infinity, onCrowded, onHandshakeFailure } = hooks
  const server =
    tls === undefined
      ? createHttpServer(options, onRequest)
      : createSecureServer({ ...options, ...tls }, onRequest)
  const refuse = (socket: Duplex, answered: Unreadable, headers?: readonly string[]): void => {
    const [status, message, remedy] = answered
    const connection = connectionOf(socket)
    // The parser reports the same error again for each further chunk. Only the first report is answered.
    if (connection.isFaulty || !socket.writable) return
    connection.isFaulty = connection.isClosing = true
    dropInput(socket)
    const { replies } = connection
    const last = [...replies].at(-1)
    const owed = [...replies].filter(isOwed).length
    hooks.onFault?.({ status, owed })
    if (last?.req.complete === false && !last.headersSent) hooks.onCutOff?.(last.req, last)
    const text = `${message} ${owed === 0 ? `Nothing was sent. ${remedy}` : LATER_BYTES}`
    const answer = (): void => {
      const next = firstOwed(replies)
      if (next !== undefined) next.once('close', answer)
      // A request that already got its reply before its body was complete gets no second reply.
      else if (last?.writableFinished === true && !last.req.complete) closeGently(socket)
      else closeGently(socket, encodeAnswer(status, text, headers))
    }
    answer()
  }
  const sockets = new Set<Socket>()
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.once('close', () => {
      sockets.delete(socket)
      idle.delete(socket)
    })
    idle.add(socket)
    const [longest] = sockets.size > maxConnections ? idle : []
    if (longest === undefined) return
    // Closes the connection that has been idle longest, so that idle connections and incomplete heads cannot keep out clients with
    // requests.
    idle.delete(longest)
    longest.destroy()
    onCrowded?.(longest === socket ? 'new' : 'idle')
  })
  // Requests arrive on the encrypted socket, so it replaces the raw socket in `idle` once the handshake is complete.
  server.on('secureConnection', (socket: Socket) => {
    const raw = rawSocketOf(socket)
    if (raw !== undefined) idle.delete(raw)
    // As with plain HTTP, a client that closes its sending side still gets the reply. A client that does so during the handshake is
    // disconnected.
    socket.allowHalfOpen = true
    idle.add(socket)
    socket.once('close', () => idle.delete(socket))
  })
  // By default, Node.js reports a failed handshake as `clientError`, and the `clientError` listener below would answer it.
  server
    .removeAllListeners('tlsClientError')
    .on('tlsClientError', ({ code = '' }: NodeJS.ErrnoException, socket: Socket) => {
      socket.destroy()
      // Load balancers open and close connections without a handshake to check the port, so ECONNRESET is not reported.
      if (code !== 'ECONNRESET') onHandshakeFailure?.({ reason: handshakeReasons[code] ?? 'other', code })
    })
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (error.code !== 'ECONNRESET') refuse(socket, unreadableAnswer(error))
  })
  server.on('connect', (_request, socket) => {
    // After CONNECT, Node.js no longer handles the connection, so these listeners must send the replies that still wait.
    socket.on('error', () => undefined)
    socket.on('drain', () => firstOwed(connectionOf(socket).replies)?.emit('drain'))
    refuse(socket, NO_TUNNEL, ['Allow: GET, HEAD, OPTIONS'])
  })
  // With this setting, a client that closes its sending side after its request (RFC 9293 3.6) still gets the reply. Without it, Node.js
  // closes the connection before the reply. The server cannot tell such a client from one that has disconnected, until a write resets the
  // connection. `Object.assign` is needed because the types of Node.js lack the member.
  return Object.assign(server, {
    httpAllowHalfOpen: true,
    // The `closeAllConnections` of Node.js leaves connections open whose TLS handshake is not complete.
    closeAllConnections: () => {
      for (const socket of sockets) socket.destroy()
    },
  })
}

const handshakeReasons: Readonly<Record<string, HandshakeFailure['reason']>> = {
  ERR_SSL_HTTP_REQUEST: 'plainHttp',
  ERR_TLS_HANDSHAKE_TIMEOUT: 'timeout',
}

const LATER_BYTES =
  'These bytes were ignored, and the earlier requests were answered. Send only HTTP requests on a connection.'

/** Returns true if a reply must be sent before the answer to a fault, because its request is complete or the reply has begun. */
function isOwed(reply: ServerResponse): boolean {
  return !reply.writableFinished && (reply.req.complete || reply.headersSent)
}

function firstOwed(replies: ReadonlySet<ServerResponse>): ServerResponse | undefined {
  for (const reply of replies) if (isOwed(reply)) return reply
  return undefined
}

/** Returns true if a proxy may disagree about where the request ends. The bytes that follow may then not be a request (RFC 9112 6.1). */
function isMisframed({ httpVersion, headers }: IncomingMessage): boolean {
  return httpVersion === '1.0' && headers['transfer-encoding'] !== undefined
}

/**
 * Emits `close` for waiting replies, so that they release their resources. Node.js emits it only from version 24.21 on, and never after
 * CONNECT.
 */
function closeForgotten(replies: ReadonlySet<ServerResponse>): void {
  for (const reply of replies) if (!reply.closed) reply.emit('close')
}

/** Discards further input, which the parser cannot read after an error. The socket is still read, so that a disconnect is noticed. */
function dropInput(socket: Duplex): void {
  socket.on('data', () => undefined).removeAllListeners('data')
  // The `end` listener of Node.js would close the connection before the fault is answered.
  socket.removeAllListeners('end').resume()
}

/**
 * The answer to a request that cannot be read. The remedy is left out if an earlier request on the connection still waits for its reply.
 */
type Unreadable = readonly [status: number, message: string, remedy: string]

const NO_TUNNEL: Unreadable = [405, 'This server does not open tunnels.', 'Use another method than CONNECT.']

/** The answers for error codes of Node.js. Any other code is answered with 400. */
const answers: Readonly<Record<string, Unreadable>> = {
  HPE_HEADER_OVERFLOW: [
    431,
    'The request line and header fields are too long.',
    'Send fewer or shorter fields.',
  ],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'The request took too long to arrive.', 'Send the request again.'],
}

export function unreadableAnswer(error?: NodeJS.ErrnoException): Unreadable {
  const other: Unreadable = [400, 'The request is not valid HTTP.', 'Correct the request.']
  return answers[error?.code ?? ''] ?? other
}

/** Encodes an answer whose body has the form of the service's gateway (service-facts 12). */
function encodeAnswer(status: number, message: string, headers: readonly string[] = []): string {
  const body = JSON.stringify({ statusCode: status, message })
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
    ...headers,
  ]
  return `${head.join('\r\n')}\r\n\r\n${body}`
}

const LINGER_MS = 1_000

/**
 * Sends `text`, and closes the connection a second later. Closing at once with unread input could send a reset, and the client would lose
 * the replies (RFC 9112 9.6).
 */
function closeGently(socket: Duplex, text?: string): void {
  if (!socket.writable) return
  socket.end(text)
  const timer = setTimeout(() => socket.destroy(), LINGER_MS).unref()
  socket.once('close', () => clearTimeout(timer))
}
