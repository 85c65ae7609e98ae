import { X509Certificate } from 'node:crypto'
import { createSecureContext, type SecureContextOptions } from 'node:tls'

import * as z from 'zod'

import { hasWholeHost } from '../http/address.ts'
import { Secret } from './secret.ts'
import { key, secret } from './values.ts'

const certificate = secret.refine(
  (own) => !own.isRead || loads({ cert: own.reveal() }),
  'must be a certificate in PEM form',
)
const privateKey = secret.refine(
  (own) => !own.isRead || loads({ key: own.reveal() }),
  'must be a private key in PEM form, without a passphrase',
)

const NOT_THE_KEY = 'is not the key of the certificate in cert'

export const listenerTlsSchema = z
  .strictObject({
    cert: key(
      'Certificate in PEM form, followed by the certificates of its issuers except for the root.',
      certificate,
    ),
    key: key('Private key of the certificate, in PEM form and without a passphrase.', privateKey),
  })
  .refine(belongTogether, { path: ['key'], message: NOT_THE_KEY })

const authorities = secret.refine(
  (own) => !own.isRead || (own.reveal().startsWith('-----BEGIN CERTIFICATE') && loads({ ca: own.reveal() })),
  'must be one or more certificates in PEM form',
)

/** Additional authorities for the certificate of an upstream, and the client certificate for the upstream. */
export const upstreamTlsSchema = z
  .strictObject({
    ca: key(
      'Certificates in PEM form of authorities that are trusted in addition to the authorities of Node.js.',
      authorities.optional(),
    ),
    cert: key(
      'Client certificate in PEM form, for a service that requires one. Set key too.',
      certificate.optional(),
    ),
    key: key(
      'Private key of the client certificate, in PEM form and without a passphrase.',
      privateKey.optional(),
    ),
  })
  .refine(({ cert, key: own }) => (cert === undefined) === (own === undefined), {
    path: ['cert'],
    message: 'requires key, and key requires cert',
  })
  .refine(belongTogether, { path: ['key'], message: NOT_THE_KEY })

const PROXY = 'must be http://<host>:<port>, or { env: NAME } or { file: path } with such an address'

/** The address of an outbound proxy. The address becomes a secret, because it may contain a password. */
export const proxySchema = z
  .union([z.string().meta({ pattern: '^[Hh][Tt][Tt][Pp]://.+$' }), secret], PROXY)
  .transform((address) => (typeof address === 'string' ? new Secret(address) : address))
  .refine(
    (own) => !own.isRead || isProxyAddress(own.reveal()),
    `${PROXY}. Characters such as / @ : ? # and % in its user or password have to be percent-encoded`,
  )

export type ListenerTls = z.infer<typeof listenerTlsSchema>

/** Returns the certificate and the key of a listener in PEM form, or `undefined` if the listener does not use TLS. */
export function certificateOf(
  tls: ListenerTls | undefined,
): { readonly cert: string; readonly key: string } | undefined {
  return tls && { cert: tls.cert.reveal(), key: tls.key.reveal() }
}

/** Returns the time at which the first certificate of a PEM text expires, in milliseconds since the epoch. */
export function expiryOf(cert: Secret): number {
  return new X509Certificate(cert.reveal()).validToDate.getTime()
}

/** Returns false if both texts are valid, but the key belongs to another certificate. */
function belongTogether(own: {
  readonly cert?: Secret | undefined
  readonly key?: Secret | undefined
}): boolean {
  const [cert, privateKeyText] = [own.cert?.reveal(), own.key?.reveal()]
  const pair = { cert, key: privateKeyText }
  return loads(pair) || !loads({ cert }) || !loads({ key: privateKeyText })
}

/** Returns true for the address of an HTTP proxy whose user and password can be decoded. */
export function isProxyAddress(text: string): boolean {
  if (!URL.canParse(text)) return false
  const url = new URL(text)
  if (url.protocol !== 'http:' || url.pathname !== '/' || url.search !== '' || !hasWholeHost(url))
    return false
  try {
    decodeURIComponent(url.username + url.password)
    return true
  } catch {
    return false
  }
}

function loads(options: SecureContextOptions): boolean {
  try {
    createSecureContext(options)
    return true
  } catch {
    return false
  }
}
