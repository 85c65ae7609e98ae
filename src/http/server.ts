import type { Server, ServerResponse } from 'node:http'
import { type AddressInfo, Server as NetServer } from 'node:net'
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

/** The reason of all signals of clients that have gone: an exception costs more than the rest of a signal. */
export const GONE = new DOMException('The client closed its connection.', 'AbortError')

/** Aborts when the connection of the reply closes. */
export function untilGone(response: ServerResponse): AbortSignal {
  const gone = new AbortController()
  if (response.destroyed) gone.abort(GONE)
  else response.once('close', () => gone.abort(GONE))
  return gone.signal
}
