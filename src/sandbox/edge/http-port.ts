import { once } from 'node:events'
import { createServer } from 'node:http'
import type { RequestListener } from 'node:http'
import { answerUnreadable } from '../../http/answer-unreadable.ts'
import { startListening } from '../../http/server.ts'

/** Where a port listens. */
export interface PortAddress {
  readonly host: string
  /** 0: any free one. */
  readonly port: number
  /** The option that chooses the port, for the error about a port in use. */
  readonly option: string | undefined
}

/** One listening port of the sandbox. */
export interface HttpPort {
  /** Resolves to the base address, without a slash at the end, and the port. Error: `ADP_CONFIGURATION` where it cannot. */
  listen(): Promise<{ readonly url: string; readonly port: number }>
  /** Ends all connections. */
  close(): Promise<void>
}

// Room for a filter over many learners: the query's own limit is to decide, not the parser of HTTP.
const maxHeaderBytes = 131_072
// A client's pool must time out first, or a connection closes at the moment of its reuse.
const keepAliveMs = 75_000

/** Creates a port that answers with `app`. */
export function createHttpPort(app: RequestListener, { host, port, option }: PortAddress): HttpPort {
  const server = createServer({ maxHeaderSize: maxHeaderBytes }, app)
  server.keepAliveTimeout = keepAliveMs
  server.on('clientError', answerUnreadable)
  return {
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
