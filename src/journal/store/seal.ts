import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib'

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

/** A request of thirty records shrinks to a tenth, its answers to a quarter; what is less than a page is not worth the time. */
const COMPRESS_FROM = 4_096
/** Level 1 with a window of 32 KB: its own, of half a megabyte, would be mapped and cleared anew for each call. */
const FAST = {
  [constants.ZSTD_c_compressionLevel]: 1,
  [constants.ZSTD_c_windowLog]: 15,
  [constants.ZSTD_c_hashLog]: 12,
}
/** How a frame of Zstandard begins (RFC 8878, 3.1.1); what is kept as it came begins with a bracket of JSON. */
const ZSTD = Buffer.from([0x28, 0xb5, 0x2f, 0xfd])

/** Compresses what is large, then encrypts with AES-256-GCM where there is a key: nonce, tag, ciphertext. */
export function seal(
  plain: Uint8Array,
  key: JournalKey | undefined,
  place: SealedPlace,
  batch: number,
): Sealed {
  const bytes = plain.length < COMPRESS_FROM ? plain : compress(plain)
  if (key === undefined) return { keyId: null, body: bytes }
  const nonce = randomBytes(NONCE)
  const cipher = createCipheriv('aes-256-gcm', key.key, nonce)
  cipher.setAAD(placeOf(place, batch))
  const text = cipher.update(bytes)
  cipher.final()
  return { keyId: key.id, body: Buffer.concat([nonce, cipher.getAuthTag(), text]) }
}

const compress = (plain: Uint8Array): Uint8Array =>
  zstdCompressSync(plain, { params: FAST, pledgedSrcSize: plain.length })

/** Undoes `seal`. Errors: `ADP_CONFIGURATION` without the key, or where it does not fit; `ADP_INTERNAL` for damaged bytes. */
export function unseal(
  { keyId, body }: Sealed,
  keys: readonly JournalKey[],
  place: SealedPlace,
  batch: number,
): Uint8Array {
  return decompress(decrypt({ keyId, body }, keys, place, batch))
}

function decrypt(
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

function decompress(bytes: Uint8Array): Uint8Array {
  if (Buffer.compare(bytes.subarray(0, ZSTD.length), ZSTD) !== 0) return bytes
  try {
    return zstdDecompressSync(bytes)
  } catch (cause) {
    throw new AdapterError('ADP_INTERNAL', 'The journal holds bytes that were damaged.', { cause })
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
