import type { Server, ServerResponse } from 'node:http'
import { type AddressInfo, Server as NetServer } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'

import { AdapterError } from '../errors.ts'

/** Maximum size of a request head in bytes. It fits a next link (64 KiB) and a filter over a class; Node's default, 16 KiB, does not. */
export const MAX_HEADER_BYTES = 131_072

/** Errors that another port does not solve: an address of another machine, or a name without an address. */
const badHost: ReadonlySet<string> = new Set(['EADDRNOTAVAIL', 'ENOTFOUND', 'EAI_AGAIN', 'EINVAL'])

/** Returns the port in use. Throws `ADP_CONFIGURATION`, naming `portOption` as the option for another port. */
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

interface Stopping {
  readonly idle: () => Promise<void>
  /** Time for clients to read their replies, in milliseconds. */
  readonly drainMs: number
  /** Called if `drainMs` passes before clients have read all replies. */
  readonly onExpired: () => void
}

/**
 * Stops listening, waits for requests in progress (also for a batch whose client has disconnected), then closes the connections. After
 * `drainMs`, disconnects clients that have not read their replies; their records are still finished. `server.close()` comes last, because
 * Node treats a connection as idle while the end of a long reply waits for a slow client.
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

/** The abort reason of every signal for a disconnected client. It is shared, because an exception costs more than the rest of a signal. */
export const CLIENT_CLOSED = new DOMException('The client closed its connection.', 'AbortError')

export function closeSignal(response: ServerResponse): AbortSignal {
  const disconnected = new AbortController()
  if (response.destroyed) disconnected.abort(CLIENT_CLOSED)
  else response.once('close', () => disconnected.abort(CLIENT_CLOSED))
  return disconnected.signal
}
