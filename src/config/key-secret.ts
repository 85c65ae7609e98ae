import * as z from 'zod'

import { Secret } from './secret.ts'

/** A key is 32 bytes, written as 64 hexadecimal digits or in base64. */
export const keySecret = z
  .instanceof(Secret, { error: 'must be { env: NAME } or { file: path }, never the key itself' })
  .refine(
    // The fault of an empty secret was reported when it was resolved.
    (secret) => secret.reveal() === '' || decodeKey(secret) !== undefined,
    'must be 32 bytes: 64 hexadecimal digits, or base64',
  )

/** The bytes of a key; undefined: it has another length. */
export function decodeKey(secret: Secret): Uint8Array | undefined {
  const text = secret.reveal()
  const bytes = /^[0-9a-f]{64}$/i.test(text) ? Buffer.from(text, 'hex') : Buffer.from(text, 'base64')
  return bytes.byteLength === 32 ? bytes : undefined
}
