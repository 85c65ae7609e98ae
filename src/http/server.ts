import { type Server, type ServerResponse, STATUS_CODES } from 'node:http'
import { type AddressInfo, Server as NetServer } from 'node:net'
import type { Duplex } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'

import { AdapterError } from '../errors.ts'

/** Room for a next link (64 KiB) and for a filter over a class; Node's default of 16 KiB is too small. */
export const MAX_HEADER_BYTES = 131_072

/** Errors that another port does not cure: a foreign address, or a name without one. */
const badHost: ReadonlySet<string> = new Set(['EADDRNOTAVAIL', 'ENOTFOUND', 'EAI_AGAIN', 'EINVAL'])

/**
 * Starts to listen; resolves with the port in use. Error: `ADP_CONFIGURATION` if it cannot; it names `portOption` as the option
 * for another port.
 */
export function startListening(
  server: Server,
  port: number,
  host: string,
  portOption = '--port',
): Promise<number> {
  return new Promise((resolve, reject) => {
    const onError = (cause: NodeJS.ErrnoException): void => {
      const { code = cause.name } = cause
      const what = code === 'EADDRINUSE' ? `Port ${port} is in use` : `Cannot listen on ${host}, port ${port}`
      const option = badHost.has(code) ? '--host' : portOption
      reject(
        new AdapterError('ADP_CONFIGURATION', `${what} (${code}). Choose another with ${option}.`, { cause }),
      )
    }
    server.once('error', onError)
    server.listen(port, host, () => {
      server.off('error', onError)
      resolve((server.address() as AddressInfo).port)
    })
  })
}

/** How a server stops. */
interface Stopping {
  /** Resolves when no request is being handled. */
  readonly idle: () => Promise<void>
  /** Time for replies to reach their clients. */
  readonly drainMs: number
  /** Called when that time is over before all replies were read. */
  readonly onExpired: () => void
}

/**
 * Stops listening, waits for the requests under way (also for a batch whose client has disconnected), then closes the connections.
 * A client that does not read its reply is disconnected after `drainMs`; its records are still finished. `server.close()` comes
 * last: Node would take a connection for idle while the end of a long reply waits for a slow client.
 */
export async function stopServing(server: Server, { idle, drainMs, onExpired }: Stopping): Promise<void> {
  NetServer.prototype.close.call(server)
  const drained = new AbortController()
  const expiry = delay(drainMs, true, { signal: drained.signal }).catch(() => false)
  const expired = await Promise.race([idle().then(() => false), expiry])
  drained.abort()
  if (expired) onExpired()
  server.closeAllConnections()
  await idle()
  await new Promise<void>((resolve) => server.close(() => resolve()))
}

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

/** The reason of all signals of clients that have gone: an exception costs more than the rest of a signal. */
export const GONE = new DOMException('The client closed its connection.', 'AbortError')

/** Aborts when the connection of the reply closes. */
export function untilGone(response: ServerResponse): AbortSignal {
  const gone = new AbortController()
  if (response.destroyed) gone.abort(GONE)
  else response.once('close', () => gone.abort(GONE))
  return gone.signal
}
