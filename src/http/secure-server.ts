import type { RequestListener, Server, ServerOptions } from 'node:http'
import { createServer } from 'node:https'
import type { Socket } from 'node:net'
import { Server as TlsServer } from 'node:tls'

/** A certificate with the certificates of its issuers, and its key, both as PEM texts. */
export interface ServerTls {
  readonly cert: string
  readonly key: string
}

/** The time within which a TLS handshake must be complete, unless `headersTimeout` is shorter. */
const HANDSHAKE_MS = 20_000
const MIN_VERSION = 'TLSv1.2'

/** Creates an HTTPS server, which does not listen yet. */
export function createSecureServer(options: ServerOptions & ServerTls, listener: RequestListener): Server {
  return createServer(
    {
      ...options,
      minVersion: MIN_VERSION,
      handshakeTimeout: Math.min(HANDSHAKE_MS, options.headersTimeout ?? HANDSHAKE_MS),
    },
    listener,
  )
}

/** Replaces the certificate of a server for connections that clients open later. A server without TLS stays without TLS. */
export function replaceCertificate(server: Server, tls: ServerTls | undefined): void {
  if (server instanceof TlsServer && tls !== undefined)
    server.setSecureContext({ ...tls, minVersion: MIN_VERSION })
}

/** Returns the socket below an encrypted socket. Only an internal property of Node.js leads to this socket. */
export function rawSocketOf(socket: Socket): Socket | undefined {
  const { _handle: handle } = socket as { readonly _handle?: { readonly _parentWrap?: Socket } | null }
  return handle?._parentWrap
}
