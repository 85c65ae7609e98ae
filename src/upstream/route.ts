import { type ClientRequestArgs, request } from 'node:http'
import { Socket } from 'node:net'
import type { SecureContext } from 'node:tls'

import { buildConnector, errors } from 'undici'

import { ProxyError } from '../http/connection-error.ts'

/** The way to an upstream: the proxy in between, and the certificates of both sides. */
export interface UpstreamRoute {
  /** Returns the HTTP proxy for connections to an origin, or `undefined` for a direct connection. */
  readonly proxyFor: (origin: URL) => URL | undefined
  /** The authorities that are trusted and the certificate of the client, or `undefined` for the authorities of Node.js alone. */
  readonly secureContext?: SecureContext | undefined
  readonly onProxyFailure?: ((error: ProxyError) => void) | undefined
}

/**
 * Creates a function that opens connections to an upstream, for undici and for agents of Node.js. Over a proxy, every connection is a
 * tunnel (CONNECT), also for http. The proxy can then refuse a write only before the write is sent, so a refused write was certainly not
 * applied (decision 023).
 */
export function createConnector(connectMs: number, route?: UpstreamRoute): buildConnector.connector {
  const { secureContext, proxyFor, onProxyFailure } = route ?? {}
  const connect = buildConnector({
    allowH2: false,
    timeout: connectMs,
    ...(secureContext && { secureContext }),
  })
  return (target, done) => {
    const { protocol, hostname } = target
    const port = target.port === '' ? (protocol === 'https:' ? '443' : '80') : target.port
    const authority = `${hostname.includes(':') ? `[${hostname}]` : hostname}:${port}`
    let proxy: URL | undefined
    try {
      proxy = proxyFor?.(new URL(`${protocol}//${authority}`))
    } catch (cause) {
      done(cause instanceof Error ? cause : new errors.ConnectTimeoutError(), null)
      return
    }
    if (proxy === undefined) {
      connect(target, done)
      return
    }
    openTunnel(proxy, authority, connectMs, (error, socket) => {
      if (error !== null) {
        onProxyFailure?.(error)
        done(error, null)
      } else if (protocol === 'https:') connect({ ...target, httpSocket: socket }, done)
      else done(null, socket)
    })
  }
}

type CreateConnection = NonNullable<ClientRequestArgs['createConnection']>

/** Creates the `createConnection` option with which Node.js connects to `url`. The function calls back only once the connection is open. */
export function createConnectionTo(url: URL, connectMs: number, route?: UpstreamRoute): CreateConnection {
  const { protocol, host, port } = url
  const hostname = withoutBrackets(url.hostname)
  const connect = createConnector(connectMs, route)
  return (_target, done) => {
    connect({ protocol, host, hostname, port }, (...[error, socket]) => {
      // With an error, the types still require a socket, which Node.js ignores.
      done(error, socket ?? new Socket())
    })
    return undefined
  }
}

const withoutBrackets = (hostname: string): string => hostname.replace(/^\[|\]$/g, '')

type TunnelArgs = [error: null, socket: Socket] | [error: ProxyError, socket: null]

/** Opens a tunnel to `authority` (RFC 9110 9.3.6). Calls `done` once. */
function openTunnel(
  proxy: URL,
  authority: string,
  connectMs: number,
  done: (...args: TunnelArgs) => void,
): void {
  const user = [proxy.username, proxy.password].map(decodeURIComponent).join(':')
  const asked = request({
    method: 'CONNECT',
    host: withoutBrackets(proxy.hostname),
    port: proxy.port === '' ? 80 : proxy.port,
    path: authority,
    agent: false,
    headers: {
      Host: authority,
      ...(user === ':' ? {} : { 'Proxy-Authorization': `Basic ${Buffer.from(user).toString('base64')}` }),
    },
  })
  const timer = setTimeout(() => asked.destroy(new errors.ConnectTimeoutError()), connectMs)
  asked
    .once('close', () => clearTimeout(timer))
    .once('connect', ({ statusCode = 0 }, socket: Socket) => {
      clearTimeout(timer)
      if (statusCode >= 200 && statusCode < 300) {
        done(null, socket)
        return
      }
      socket.destroy()
      done(new ProxyError(proxy, statusCode), null)
    })
    .once('error', (cause) => done(new ProxyError(proxy, cause), null))
    .end()
}
