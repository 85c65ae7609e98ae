import type { RequestListener, Server, ServerOptions } from 'node:http'
import { createServer } from 'node:https'
import type { Socket } from 'node:net'
import { Server as TlsServer } from 'node:tls'

/** A certificate, followed by the certificates of its issuers, and its private key, as PEM texts. */
export interface ServerTls {
  readonly cert: string
  readonly key: string
}

/** The maximum duration of a TLS handshake, unless `headersTimeout` is shorter. */
const HANDSHAKE_MS = 20_000
const MIN_VERSION = 'TLSv1.2'

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

/** Replaces the certificate of a server for new connections. A server without TLS stays without TLS. */
export function replaceCertificate(server: Server, tls: ServerTls | undefined): void {
  if (server instanceof TlsServer && tls !== undefined)
    server.setSecureContext({ ...tls, minVersion: MIN_VERSION })
}

/** Returns the raw socket below an encrypted socket. Node.js has no public property for it. */
export function rawSocketOf(socket: Socket): Socket | undefined {
  const { _handle: handle } = socket as { readonly _handle?: { readonly _parentWrap?: Socket } | null }
  return handle?._parentWrap
}
