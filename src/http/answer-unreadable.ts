import { STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'

/** Replies to errors of Node's HTTP parser, by code; all others are 400. */
const answers: Readonly<Record<string, readonly [status: number, message: string]>> = {
  HPE_HEADER_OVERFLOW: [431, 'The request line and header fields are too long.'],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'The request took too long to arrive.'],
}

const LINGER_MS = 1_000

/**
 * Answers a request that is not HTTP, or too long, and closes its connection; the handler of `clientError`. Node's own reply is
 * followed by a reset if bytes of the request are left, and the reset may overtake it; so the rest is read and discarded for a
 * second (RFC 9112 9.6). The body has the gateway's form (service-facts 12).
 */
export function answerUnreadable(error: NodeJS.ErrnoException, socket: Duplex): void {
  // Every further chunk of the same request is an error, too.
  if (error.code === 'ECONNRESET' || !socket.writable) return
  const [status, message] = unreadableAnswer(error)
  answerOnSocket(socket, status, message)
}

/** Status and message for an error of Node's parser. */
export function unreadableAnswer(error?: NodeJS.ErrnoException): readonly [status: number, message: string] {
  return answers[error?.code ?? ''] ?? [400, 'The request is not valid HTTP.']
}

/** Answers CONNECT, for which Node passes a bare connection: the adapter opens no tunnels. */
export function refuseTunnel(socket: Duplex): void {
  answerOnSocket(socket, 405, 'This server opens no tunnels.', ['Allow: GET, HEAD, OPTIONS'])
}

function answerOnSocket(
  socket: Duplex,
  status: number,
  message: string,
  headers: readonly string[] = [],
): void {
  const body = JSON.stringify({ statusCode: status, message })
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
    ...headers,
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
  socket.resume()
  const timer = setTimeout(() => socket.destroy(), LINGER_MS).unref()
  socket.once('close', () => clearTimeout(timer))
}
