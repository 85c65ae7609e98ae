import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'

import { AdapterError } from '../../errors.ts'
import type { JournalKey } from './store.ts'

/** Bytes as they are stored. */
export interface Sealed {
  readonly keyId: string | null
  readonly body: Uint8Array
}

const NONCE = 12
const TAG = 16

/** What a blob belongs to; bound to it, so that none can be moved to another batch. */
export type SealedPlace = 'payload' | 'credentials' | 'answers'

/** Encrypts with AES-256-GCM: nonce, tag, ciphertext. Without a key the bytes stay as they are. */
export function seal(
  plain: Uint8Array,
  key: JournalKey | undefined,
  place: SealedPlace,
  batch: number,
): Sealed {
  if (key === undefined) return { keyId: null, body: plain }
  const nonce = randomBytes(NONCE)
  const cipher = createCipheriv('aes-256-gcm', key.key, nonce)
  cipher.setAAD(placeOf(place, batch))
  const text = cipher.update(plain)
  cipher.final()
  return { keyId: key.id, body: Buffer.concat([nonce, cipher.getAuthTag(), text]) }
}

/** Undoes `seal`. Error: `ADP_CONFIGURATION` without the key, or where the bytes were changed. */
export function unseal(
  { keyId, body }: Sealed,
  keys: readonly JournalKey[],
  place: SealedPlace,
  batch: number,
): Uint8Array {
  if (keyId === null) return body
  const key = keys.find(({ id }) => id === keyId)
  if (key === undefined) throw missingKey(keyId)
  try {
    const cipher = createDecipheriv('aes-256-gcm', key.key, body.subarray(0, NONCE))
    cipher.setAAD(placeOf(place, batch))
    cipher.setAuthTag(body.subarray(NONCE, NONCE + TAG))
    return Buffer.concat([cipher.update(body.subarray(NONCE + TAG)), cipher.final()])
  } catch (cause) {
    throw new AdapterError(
      'ADP_CONFIGURATION',
      `What the journal keeps under key ${keyId} does not fit that key: it is another one, or the journal was changed.`,
      { cause },
    )
  }
}

/** The error for a key that the journal needs and nobody gave. */
export function missingKey(keyId: string): AdapterError {
  return new AdapterError(
    'ADP_CONFIGURATION',
    `The journal is encrypted with key ${keyId}, and no such key is configured (journal.keys).`,
  )
}

const placeOf = (place: SealedPlace, batch: number): Buffer => Buffer.from(`${place}/${batch}`)
