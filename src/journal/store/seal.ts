import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { promisify } from 'node:util'
import {
  constants,
  crc32,
  zstdCompress,
  zstdCompressSync,
  zstdDecompress,
  zstdDecompressSync,
} from 'node:zlib'

import { AdapterError } from '../../errors.ts'
import { damagedRow } from './damage.ts'
import type { JournalKey } from './store.ts'

/** Bytes as they are stored. */
export interface Sealed {
  readonly keyId: string | null
  readonly body: Uint8Array
}

const NONCE = 12
const TAG = 16

/** The kind of a blob. */
export type SealedPlace = 'payload' | 'credentials' | 'answers'

/** The batch that a blob belongs to, and the owner of the batch; bound to both, so that none can be moved to another. */
export interface SealedFor {
  readonly batch: number
  /** Empty for a batch from before there were owners. */
  readonly owner: string
}

/** How blobs are read. */
export interface Unsealing {
  readonly keys: readonly JournalKey[]
  /** True: rows that are not encrypted are read although there are keys. */
  readonly plaintextAccepted: boolean
}

/** `keyId` of a blob that is not encrypted and begins with a checksum; null: one of a version that kept no checksums. */
const CHECKED = ''
const CHECKSUM = 4

/** A request of thirty records shrinks to a tenth, its answers to a quarter; less than a page is not worth the time. */
const COMPRESS_FROM = 4_096
/** Level 1 with a window of 32 KB: its own, of half a megabyte, would be mapped and cleared anew for each call. */
const FAST = {
  [constants.ZSTD_c_compressionLevel]: 1,
  [constants.ZSTD_c_windowLog]: 15,
  [constants.ZSTD_c_hashLog]: 12,
}
/** Room for what comes out of a compression is allocated for each: an eighth of what goes in, and at least this. */
const MIN_ROOM = 2_048
/** Larger blobs are compressed by zlib's threads, while the caller serves others. */
const ASYNC_FROM = 65_536
/** A frame of this size holds a few MiB at the most. */
const DECOMPRESS_ASYNC_FROM = 4_096
/** How many bytes are checked or decrypted in one turn of the event loop. */
const CHUNK = 4_194_304
/** How a frame of Zstandard begins (RFC 8878, 3.1.1); what is kept as it came begins with a bracket of JSON. */
const ZSTD = Buffer.from([0x28, 0xb5, 0x2f, 0xfd])

/** Compresses a large blob, then encrypts with AES-256-GCM where there is a key (nonce, tag, ciphertext), or adds a checksum. */
export function seal(
  plain: Uint8Array,
  key: JournalKey | undefined,
  place: SealedPlace,
  of: SealedFor,
): Sealed {
  return protect(plain.length < COMPRESS_FROM ? plain : compress(plain), key, place, of)
}

/** `seal` for a thread that serves others: it does not block for the compression of a large blob. */
export async function sealAside(
  plain: Uint8Array,
  key: JournalKey | undefined,
  place: SealedPlace,
  of: SealedFor,
): Promise<Sealed> {
  if (plain.length < ASYNC_FROM) return seal(plain, key, place, of)
  const bytes = await compressAside(plain, { params: FAST, pledgedSrcSize: plain.length })
  return bytes.length < CHUNK ? protect(bytes, key, place, of) : protectInChunks(bytes, key, place, of)
}

/** `protect` for a large blob: other work runs between the chunks, and after the last one. */
async function protectInChunks(
  bytes: Uint8Array,
  key: JournalKey | undefined,
  place: SealedPlace,
  of: SealedFor,
): Promise<Sealed> {
  await nextTurn()
  const nonce = randomBytes(NONCE)
  const cipher = key === undefined ? undefined : createCipheriv('aes-256-gcm', key.key, nonce)
  cipher?.setAAD(placeOf(place, of))
  let sum = crc32(placeOf(place, of))
  let end = cipher === undefined ? CHECKSUM : NONCE + TAG
  const body = Buffer.allocUnsafe(end + bytes.length)
  for await (const chunk of chunksOf(bytes)) {
    if (cipher === undefined) sum = crc32(chunk, sum)
    body.set(cipher?.update(chunk) ?? chunk, end)
    end += chunk.length
  }
  cipher?.final()
  body.set(cipher === undefined ? toChecksum(sum) : Buffer.concat([nonce, cipher.getAuthTag()]))
  await nextTurn()
  return { keyId: key?.id ?? CHECKED, body }
}

const compressAside = promisify(zstdCompress)
const decompressAside = promisify(zstdDecompress)

function protect(bytes: Uint8Array, key: JournalKey | undefined, place: SealedPlace, of: SealedFor): Sealed {
  if (key === undefined) return { keyId: CHECKED, body: Buffer.concat([checksumOf(bytes, place, of), bytes]) }
  const nonce = randomBytes(NONCE)
  const cipher = createCipheriv('aes-256-gcm', key.key, nonce)
  cipher.setAAD(placeOf(place, of))
  const text = cipher.update(bytes)
  cipher.final()
  return { keyId: key.id, body: Buffer.concat([nonce, cipher.getAuthTag(), text]) }
}

const compress = (plain: Uint8Array): Uint8Array =>
  zstdCompressSync(plain, {
    params: FAST,
    pledgedSrcSize: plain.length,
    chunkSize: Math.max(MIN_ROOM, plain.length >> 3),
  })

/** Undoes `seal`; others run between the parts of a large blob. Errors: `ADP_CONFIGURATION` without the key; `ADP_JOURNAL_DAMAGED` for bytes that `seal` did not write. */
export async function unseal(
  sealed: Sealed,
  how: Unsealing,
  place: SealedPlace,
  of: SealedFor,
): Promise<Uint8Array> {
  return decompress(await open(sealed, how, place, of), place, of)
}

async function open(
  { keyId, body }: Sealed,
  { keys, plaintextAccepted }: Unsealing,
  place: SealedPlace,
  of: SealedFor,
): Promise<Uint8Array> {
  // A column of SQLite may hold another type than its own.
  if (!isBytes(body)) throw damagedRow(`the ${place} of batch ${of.batch} does not hold bytes`)
  if (keyId === null || keyId === CHECKED) {
    if (keys.length > 0 && !plaintextAccepted) {
      throw damagedRow(`the ${place} of batch ${of.batch} is not encrypted, although the journal has keys`)
    }
    if (keyId === null) return body
    const bytes = body.subarray(CHECKSUM)
    let sum = crc32(placeOf(place, of))
    for await (const chunk of chunksOf(bytes)) sum = crc32(chunk, sum)
    if (Buffer.compare(body.subarray(0, CHECKSUM), toChecksum(sum)) === 0) return bytes
    throw damagedRow(`the checksum of the ${place} of batch ${of.batch} is wrong`)
  }
  const key = keys.find(({ id }) => id === keyId)
  if (key === undefined) throw missingKey(keyId)
  try {
    const cipher = createDecipheriv('aes-256-gcm', key.key, body.subarray(0, NONCE))
    cipher.setAAD(placeOf(place, of))
    cipher.setAuthTag(body.subarray(NONCE, NONCE + TAG))
    const plain: Buffer[] = []
    for await (const chunk of chunksOf(body.subarray(NONCE + TAG))) plain.push(cipher.update(chunk))
    return Buffer.concat([...plain, cipher.final()])
  } catch (cause) {
    throw damagedRow(`the ${place} of batch ${of.batch} was changed: it does not fit key ${keyId}`, cause)
  }
}

/** The bytes in chunks, between which others run. */
async function* chunksOf(bytes: Uint8Array): AsyncGenerator<Uint8Array, void> {
  yield bytes.subarray(0, CHUNK)
  for (let from = CHUNK; from < bytes.length; from += CHUNK) {
    await nextTurn()
    yield bytes.subarray(from, from + CHUNK)
  }
}

async function decompress(bytes: Uint8Array, place: SealedPlace, { batch }: SealedFor): Promise<Uint8Array> {
  if (Buffer.compare(bytes.subarray(0, ZSTD.length), ZSTD) !== 0) return bytes
  try {
    return bytes.length < DECOMPRESS_ASYNC_FROM ? zstdDecompressSync(bytes) : await decompressAside(bytes)
  } catch (cause) {
    throw damagedRow(`the ${place} of batch ${batch} cannot be decompressed`, cause)
  }
}

/** The error for a key that the journal needs and the configuration lacks. */
export function missingKey(keyId: string): AdapterError {
  return new AdapterError(
    'ADP_CONFIGURATION',
    `The journal is encrypted with key ${keyId}, and no such key is configured (journal.keys).`,
  )
}

function placeOf(place: SealedPlace, { batch, owner }: SealedFor): Buffer {
  return Buffer.from(owner === '' ? `${place}/${batch}` : `${place}/${batch}/${owner}`)
}

const isBytes = (value: unknown): value is Uint8Array => value instanceof Uint8Array

function checksumOf(bytes: Uint8Array, place: SealedPlace, of: SealedFor): Buffer {
  return toChecksum(crc32(bytes, crc32(placeOf(place, of))))
}

function toChecksum(sum: number): Buffer {
  const checksum = Buffer.allocUnsafe(CHECKSUM)
  checksum.writeUInt32BE(sum)
  return checksum
}
