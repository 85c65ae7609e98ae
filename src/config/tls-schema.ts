import { X509Certificate } from 'node:crypto'
import { createSecureContext, type SecureContextOptions } from 'node:tls'

import * as z from 'zod'

import type { Secret } from './secret.ts'
import { key, secret } from './values.ts'

const certificate = secret.refine(
  (own) => !own.isRead || loads({ cert: own.reveal() }),
  'must be a certificate in PEM form',
)
const privateKey = secret.refine(
  (own) => !own.isRead || loads({ key: own.reveal() }),
  'must be a private key in PEM form, without a passphrase',
)

/** The certificate and the key of a listener. */
export const listenerTlsSchema = z
  .strictObject({
    cert: key(
      'Certificate in PEM form, followed by the certificates of its issuers except for the root.',
      certificate,
    ),
    key: key('Private key of the certificate, in PEM form and without a passphrase.', privateKey),
  })
  .refine(belongTogether, { path: ['key'], message: 'is not the key of the certificate in cert' })

export type ListenerTls = z.infer<typeof listenerTlsSchema>

/** Returns the certificate and the key of a listener as PEM texts, or `undefined` if the listener does not use TLS. */
export function certificateOf(
  tls: ListenerTls | undefined,
): { readonly cert: string; readonly key: string } | undefined {
  return tls && { cert: tls.cert.reveal(), key: tls.key.reveal() }
}

/** Returns the time at which the first certificate of a PEM text expires, in milliseconds. */
export function expiryOf(cert: Secret): number {
  return new X509Certificate(cert.reveal()).validToDate.getTime()
}

/** Returns false if both texts are valid, but the key belongs to another certificate. */
function belongTogether({ cert, key: own }: { readonly cert: Secret; readonly key: Secret }): boolean {
  const pair = { cert: cert.reveal(), key: own.reveal() }
  return loads(pair) || !loads({ cert: pair.cert }) || !loads({ key: pair.key })
}

function loads(options: SecureContextOptions): boolean {
  try {
    createSecureContext(options)
    return true
  } catch {
    return false
  }
}
