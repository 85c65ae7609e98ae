import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  hash,
  type KeyObject,
  randomBytes,
} from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { promisify } from 'node:util'
import { constants, zstdCompress, zstdCompressSync, zstdDecompress, zstdDecompressSync } from 'node:zlib'

import { AdapterError } from '../errors.ts'
import type { ConfirmedMark } from './journal.ts'
import { damagedRow } from './store-error.ts'

export interface JournalKey {
  readonly id: string
  /** The key, which has exactly 32 bytes. */
  readonly key: Uint8Array
}

export function missingKey(keyId: string): AdapterError {
  return new AdapterError(
    'ADP_CONFIGURATION',
    `The journal is encrypted with key ${keyId}, which is not configured. Nothing was changed. Add the key to journal.keys.`,
  )
}

export interface Sealed {
  readonly keyId: string | null
  readonly body: Uint8Array
}

/** The kind, batch and owner of a blob. Encryption binds the blob to these three, so that the blob cannot be moved to another batch. */
export interface SealedFor {
  readonly kind: 'payload' | 'credentials' | 'answers'
  readonly batch: number
  readonly owner: string
}

export interface Unsealing {
  readonly keys: readonly JournalKey[]
  /** True if the journal reads unencrypted rows although it has keys. */
  readonly plaintextAccepted: boolean
}

const NONCE = 12
const TAG = 16
const GCM = { authTagLength: TAG }

/**
 * Compresses at level 1 with a window of 32 KB. The default window of half a megabyte would be mapped and cleared for each call. The
 * checksum detects damage on the disk in a journal without encryption.
 */
const FAST = {
  [constants.ZSTD_c_compressionLevel]: 1,
  [constants.ZSTD_c_windowLog]: 15,
  [constants.ZSTD_c_hashLog]: 12,
  [constants.ZSTD_c_checksumFlag]: 1,
}
/** Minimum size in bytes of the output buffer of a synchronous compression. For an input above 16 KiB, the buffer is an eighth as big. */
const MIN_ROOM = 2_048
/** Blobs of at least this many bytes are compressed in the thread pool of Node.js, so that the event loop serves other requests. */
const ASYNC_FROM = 65_536
/**
 * A compressed blob smaller than this many bytes is decompressed on the calling thread. The blob expands to about 32 MiB at most, and
 * usually to far less.
 */
const DECOMPRESS_ASYNC_FROM = 4_096
const CHUNK = 4_194_304

const compressAside = promisify(zstdCompress)
const decompressAside = promisify(zstdDecompress)

const keyObjects = new WeakMap<Uint8Array, KeyObject>()

/** Returns the key as a cached `KeyObject`. With the raw bytes, each call of AES or HMAC would take about 15 µs longer. */
function keyObjectOf(key: Uint8Array): KeyObject {
  const made = keyObjects.get(key) ?? createSecretKey(key)
  keyObjects.set(key, made)
  return made
}

/** Compresses a blob with Zstandard. If the journal has a key, encrypts the result with AES-256-GCM: nonce, tag and ciphertext. */
export async function seal(plain: Uint8Array, key: JournalKey | undefined, of: SealedFor): Promise<Sealed> {
  const bytes = await compress(plain)
  if (key === undefined) return { keyId: null, body: bytes }
  return { keyId: key.id, body: await encrypt(bytes, key, nameOf(of)) }
}

/** Encrypts bytes with AES-256-GCM and binds them to a name. Returns nonce, tag and ciphertext. */
export async function encrypt(plain: Uint8Array, { key }: JournalKey, boundTo: string): Promise<Buffer> {
  const nonce = randomBytes(NONCE)
  const cipher = createCipheriv('aes-256-gcm', keyObjectOf(key), nonce, GCM).setAAD(Buffer.from(boundTo))
  const parts: Uint8Array[] = []
  for await (const chunk of chunksOf(plain)) parts.push(cipher.update(chunk))
  cipher.final()
  return Buffer.concat([nonce, cipher.getAuthTag(), ...parts])
}

/** Reverses `encrypt`. Rejects if the bytes were changed, or encrypted with another key or name. */
export async function decrypt(body: Uint8Array, { key }: JournalKey, boundTo: string): Promise<Buffer> {
  const nonce = body.subarray(0, NONCE)
  const cipher = createDecipheriv('aes-256-gcm', keyObjectOf(key), nonce, GCM).setAAD(Buffer.from(boundTo))
  cipher.setAuthTag(body.subarray(NONCE, NONCE + TAG))
  const plain: Buffer[] = []
  for await (const chunk of chunksOf(body.subarray(NONCE + TAG))) plain.push(cipher.update(chunk))
  return Buffer.concat([...plain, cipher.final()])
}

/** Reverses `seal`. Throws `ADP_CONFIGURATION` if the key is missing, and `ADP_JOURNAL_DAMAGED` for bytes that `seal` did not write. */
export async function unseal(sealed: Sealed, how: Unsealing, of: SealedFor): Promise<Uint8Array> {
  const bytes = await openSealed(sealed, how, of)
  try {
    return bytes.length < DECOMPRESS_ASYNC_FROM ? zstdDecompressSync(bytes) : await decompressAside(bytes)
  } catch (cause) {
    throw damagedRow(`the ${of.kind} of batch ${of.batch} cannot be decompressed`, cause)
  }
}

async function openSealed(
  { keyId, body }: Sealed,
  { keys, plaintextAccepted }: Unsealing,
  of: SealedFor,
): Promise<Uint8Array> {
  const name = `the ${of.kind} of batch ${of.batch}`
  // Checks the type, because a column of SQLite may contain values of another type than its declared type.
  if (!isBytes(body)) throw damagedRow(`${name} does not contain bytes`)
  if (keyId === null) {
    if (keys.length === 0 || plaintextAccepted) return body
    throw damagedRow(`${name} is not encrypted, although the journal has keys`)
  }
  const key = keys.find(({ id }) => id === keyId)
  if (key === undefined) throw missingKey(keyId)
  try {
    return await decrypt(body, key, nameOf(of))
  } catch (cause) {
    throw damagedRow(`${name} was changed: key ${keyId} cannot decrypt it`, cause)
  }
}

async function compress(plain: Uint8Array): Promise<Uint8Array> {
  const options = { params: FAST, pledgedSrcSize: plain.length }
  if (plain.length >= ASYNC_FROM) return compressAside(plain, options)
  return zstdCompressSync(plain, { ...options, chunkSize: Math.max(MIN_ROOM, plain.length >> 3) })
}

/** Splits bytes into chunks, and returns to the event loop between the chunks. */
async function* chunksOf(bytes: Uint8Array): AsyncGenerator<Uint8Array, void> {
  yield bytes.subarray(0, CHUNK)
  for (let from = CHUNK; from < bytes.length; from += CHUNK) {
    await nextTurn()
    yield bytes.subarray(from, from + CHUNK)
  }
}

const nameOf = ({ kind, batch, owner }: SealedFor): string => `${kind}/${batch}/${owner}`

const isBytes = (value: unknown): value is Uint8Array => value instanceof Uint8Array

/**
 * Packs the replies of records that were settled together into one row: a line of JSON with positions and lengths (in UTF-16 code units),
 * then the texts. One packed row costs much less than one row for each record. Returns `undefined` if there is no reply.
 */
export function packAnswers(
  answers: readonly { readonly position: number; readonly answer: string | undefined }[],
): Uint8Array | undefined {
  const kept = answers.flatMap(({ position, answer }) => (answer === undefined ? [] : [{ position, answer }]))
  if (kept.length === 0) return undefined
  const head = kept.flatMap(({ position, answer }) => [position, answer.length])
  return Buffer.from(`${JSON.stringify(head)}\n${kept.map(({ answer }) => answer).join('')}`)
}

/** Reverses `packAnswers`, and adds the replies to `answers`. Later replies replace earlier replies of the same position. */
export function unpackAnswers(body: Uint8Array, answers: Map<number, string>): void {
  const text = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString()
  const end = text.indexOf('\n')
  const head = JSON.parse(text.slice(0, end)) as unknown
  if (!Array.isArray(head)) return
  let from = end + 1
  for (let at = 0; at < head.length; at += 2) {
    const [position, length] = [Number(head[at]), Number(head[at + 1])]
    answers.set(position, text.slice(from, from + length))
    from += length
  }
}

const KEY_HEX = 32
const MARK_HEX = 16

/** The value that replaces the hash of an erased key. */
export const NO_KEY = '0'.repeat(KEY_HEX)

/** Hashes each text to 16 bytes in hexadecimal. The salt of the journal makes precomputed tables of hashes useless. */
export type HashKeys = (keys: readonly string[]) => readonly string[]

export function createKeyHash(salt: Uint8Array): HashKeys {
  const prefix = Buffer.from(salt).toString('hex')
  return (keys) => keys.map((key) => hash('sha256', prefix + key, 'hex').slice(0, KEY_HEX))
}

/**
 * Returns the secret that signs next links and determines the position of each unit at `canary`. All instances of a journal have the same
 * secret.
 */
export const linkSecretOf = (salt: Uint8Array): Buffer =>
  createHmac('sha256', salt).update('markbridge next links').digest()

/** Returns the salted hash of a mark's id: 8 bytes in hexadecimal. */
export const hashMarkId = (hashKeys: HashKeys, externalId: string): string =>
  hashKeys([`mark ${externalId.toLowerCase()}`])[0]?.slice(0, MARK_HEX) ?? ''

export const encodeMark = (hashKeys: HashKeys, { externalId, recordedMs }: ConfirmedMark): string =>
  hashMarkId(hashKeys, externalId) + String(recordedMs)

export function decodeMark(text: string): { readonly idHash: string; readonly recordedMs: number } {
  return { idHash: text.slice(0, MARK_HEX), recordedMs: Number(text.slice(MARK_HEX)) }
}
