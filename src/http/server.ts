import type { Server, ServerResponse } from 'node:http'
import { type AddressInfo, Server as NetServer } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'

import { AdapterError } from '../errors.ts'

/**
 * The maximum size of a request head in bytes. The default of Node.js (16 KiB) is too small for next links and for filters over a whole
 * class of pupils.
 */
export const MAX_HEADER_BYTES = 131_072

/** The error codes for a host on which this machine cannot listen, such as an address of another machine or an unknown name. */
const badHost: ReadonlySet<string> = new Set(['EADDRNOTAVAIL', 'ENOTFOUND', 'EAI_AGAIN', 'EINVAL'])

/**
 * Starts to listen and returns the port in use. Throws `ADP_CONFIGURATION` with a message that names `portOption` as the way to choose
 * another port.
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
        new AdapterError(
          'ADP_CONFIGURATION',
          `${what} (${code}). Nothing was started. Choose another ${option === '--host' ? 'host' : 'port'} with ${option}.`,
          { cause },
        ),
      )
    }
    server.once('error', onError)
    server.listen(port, host, () => {
      server.off('error', onError)
      resolve((server.address() as AddressInfo).port)
    })
  })
}

export function urlOf({
  tls,
  host,
  port,
}: {
  readonly tls?: object | undefined
  readonly host: string
  readonly port: number
}): string {
  return `${tls === undefined ? 'http' : 'https'}://${host.includes(':') ? `[${host}]` : host}:${port}`
}

interface Stopping {
  readonly idle: () => Promise<void>
  /** The maximum time in milliseconds for clients to read their replies. */
  readonly drainMs: number
  /** Called if `drainMs` ends before clients have read all replies. */
  readonly onExpired: () => void
}

/**
 * Stops listening, waits for requests in progress (also for a batch whose client has disconnected), and then closes the connections. After
 * `drainMs`, disconnects clients that have not read their replies, but still finishes their records. Calls `server.close()` last, because
 * it would cut off the reply to a client that reads slowly: Node.js treats the connection of this client as idle.
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

/** The abort reason for a disconnected client. All signals share it, because creating an exception costs more than creating a signal. */
export const CLIENT_CLOSED = new DOMException('The client closed its connection.', 'AbortError')

export function closeSignal(response: ServerResponse): AbortSignal {
  const disconnected = new AbortController()
  if (response.destroyed) disconnected.abort(CLIENT_CLOSED)
  else response.once('close', () => disconnected.abort(CLIENT_CLOSED))
  return disconnected.signal
}
