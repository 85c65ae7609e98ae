import {
  createCipheriv,
  createDecipheriv,
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

/** A key of AES-256 with its name. */
export interface JournalKey {
  readonly id: string
  /** 32 bytes. */
  readonly key: Uint8Array
}

/** The error for a key that the journal needs and the configuration lacks. */
export function missingKey(keyId: string): AdapterError {
  return new AdapterError(
    'ADP_CONFIGURATION',
    `The journal is encrypted with key ${keyId}, and no such key is configured (journal.keys).`,
  )
}

/** Bytes as they are stored. */
export interface Sealed {
  /** The key that they are encrypted with; null: they are not. */
  readonly keyId: string | null
  readonly body: Uint8Array
}

/** The kind of a blob, and the batch that it belongs to with its owner; bound to them, so that none can be moved to another. */
export interface SealedFor {
  readonly kind: 'payload' | 'credentials' | 'answers'
  readonly batch: number
  readonly owner: string
}

/** How blobs are read. */
export interface Unsealing {
  readonly keys: readonly JournalKey[]
  /** True: rows that are not encrypted are read although there are keys. */
  readonly plaintextAccepted: boolean
}

const NONCE = 12
const TAG = 16
const GCM = { authTagLength: TAG }

/**
 * Level 1 with a window of 32 KB: its own, of half a megabyte, would be mapped and cleared anew for each call. A request of thirty records
 * shrinks to a tenth, its answers to a quarter. The checksum finds what a disk has changed where nothing is encrypted.
 */
const FAST = {
  [constants.ZSTD_c_compressionLevel]: 1,
  [constants.ZSTD_c_windowLog]: 15,
  [constants.ZSTD_c_hashLog]: 12,
  [constants.ZSTD_c_checksumFlag]: 1,
}
/** Room for what comes out of a compression is allocated for each: an eighth of what goes in, and at least this. */
const MIN_ROOM = 2_048
/** Larger blobs are compressed by zlib's threads, while the caller serves others. */
const ASYNC_FROM = 65_536
/** A frame of this size holds a few MiB at the most. */
const DECOMPRESS_ASYNC_FROM = 4_096
/** How many bytes are encrypted or decrypted in one turn of the event loop. */
const CHUNK = 4_194_304

const compressAside = promisify(zstdCompress)
const decompressAside = promisify(zstdDecompress)

const keyObjects = new WeakMap<Uint8Array, KeyObject>()

/** The key in the form of Node.js: with its bytes, each call of AES and HMAC costs some 15 µs more. */
export function keyObjectOf(key: Uint8Array): KeyObject {
  const made = keyObjects.get(key) ?? createSecretKey(key)
  keyObjects.set(key, made)
  return made
}

/** Compresses a blob (Zstandard), then encrypts it with AES-256-GCM where there is a key: nonce, tag, ciphertext. */
export async function seal(plain: Uint8Array, key: JournalKey | undefined, of: SealedFor): Promise<Sealed> {
  const bytes = await compress(plain)
  if (key === undefined) return { keyId: null, body: bytes }
  return { keyId: key.id, body: await encrypt(bytes, key, nameOf(of)) }
}

/** Encrypts bytes with AES-256-GCM, bound to a name: nonce, tag, ciphertext. */
export async function encrypt(plain: Uint8Array, { key }: JournalKey, boundTo: string): Promise<Buffer> {
  const nonce = randomBytes(NONCE)
  const cipher = createCipheriv('aes-256-gcm', keyObjectOf(key), nonce, GCM).setAAD(Buffer.from(boundTo))
  const parts: Uint8Array[] = []
  for await (const chunk of chunksOf(plain)) parts.push(cipher.update(chunk))
  cipher.final()
  return Buffer.concat([nonce, cipher.getAuthTag(), ...parts])
}

/** Undoes `encrypt`; rejects for bytes that were changed, or encrypted with another key or name. */
export async function decrypt(body: Uint8Array, { key }: JournalKey, boundTo: string): Promise<Buffer> {
  const nonce = body.subarray(0, NONCE)
  const cipher = createDecipheriv('aes-256-gcm', keyObjectOf(key), nonce, GCM).setAAD(Buffer.from(boundTo))
  cipher.setAuthTag(body.subarray(NONCE, NONCE + TAG))
  const plain: Buffer[] = []
  for await (const chunk of chunksOf(body.subarray(NONCE + TAG))) plain.push(cipher.update(chunk))
  return Buffer.concat([...plain, cipher.final()])
}

/** Undoes `seal`. Errors: `ADP_CONFIGURATION` without the key; `ADP_JOURNAL_DAMAGED` for bytes that `seal` did not write. */
export async function unseal(sealed: Sealed, how: Unsealing, of: SealedFor): Promise<Uint8Array> {
  const bytes = await open(sealed, how, of)
  try {
    return bytes.length < DECOMPRESS_ASYNC_FROM ? zstdDecompressSync(bytes) : await decompressAside(bytes)
  } catch (cause) {
    throw damagedRow(`the ${of.kind} of batch ${of.batch} cannot be decompressed`, cause)
  }
}

async function open(
  { keyId, body }: Sealed,
  { keys, plaintextAccepted }: Unsealing,
  of: SealedFor,
): Promise<Uint8Array> {
  const name = `the ${of.kind} of batch ${of.batch}`
  // A column of SQLite may hold another type than its own.
  if (!isBytes(body)) throw damagedRow(`${name} does not hold bytes`)
  if (keyId === null) {
    if (keys.length === 0 || plaintextAccepted) return body
    throw damagedRow(`${name} is not encrypted, although the journal has keys`)
  }
  const key = keys.find(({ id }) => id === keyId)
  if (key === undefined) throw missingKey(keyId)
  try {
    return await decrypt(body, key, nameOf(of))
  } catch (cause) {
    throw damagedRow(`${name} was changed: it does not fit key ${keyId}`, cause)
  }
}

async function compress(plain: Uint8Array): Promise<Uint8Array> {
  const options = { params: FAST, pledgedSrcSize: plain.length }
  if (plain.length >= ASYNC_FROM) return compressAside(plain, options)
  return zstdCompressSync(plain, { ...options, chunkSize: Math.max(MIN_ROOM, plain.length >> 3) })
}

/** The bytes in chunks, between which others run. */
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
 * Answers of one batch that were settled together, as one row: a line of JSON with positions and lengths (UTF-16 units),
 * then the texts. One row costs a fraction of one per record. Undefined: there is no answer among them.
 */
export function packAnswers(
  answers: readonly { readonly position: number; readonly answer: string | undefined }[],
): Uint8Array | undefined {
  const kept = answers.flatMap(({ position, answer }) => (answer === undefined ? [] : [{ position, answer }]))
  if (kept.length === 0) return undefined
  const head = kept.flatMap(({ position, answer }) => [position, answer.length])
  return Buffer.from(`${JSON.stringify(head)}\n${kept.map(({ answer }) => answer).join('')}`)
}

/** Undoes `packAnswers`, into `answers`: what comes later wins. */
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

/** Stands for the hash of a key that was erased. */
export const NO_KEY = '0'.repeat(KEY_HEX)

/** Hashes texts with the salt of the journal, 16 bytes each in hexadecimal, which no table of known keys gives away. */
export type HashKeys = (keys: readonly string[]) => readonly string[]

export function createKeyHash(salt: Uint8Array): HashKeys {
  const prefix = Buffer.from(salt).toString('hex')
  return (keys) => keys.map((key) => hash('sha256', prefix + key, 'hex').slice(0, KEY_HEX))
}

/** The salted hash of a mark's id, 8 bytes in hexadecimal. */
export const hashMarkId = (hashKeys: HashKeys, externalId: string): string =>
  hashKeys([`mark ${externalId.toLowerCase()}`])[0]?.slice(0, MARK_HEX) ?? ''

/** A mark in a row: the hash of its id, and its time. */
export const encodeMark = (hashKeys: HashKeys, { externalId, recordedMs }: ConfirmedMark): string =>
  hashMarkId(hashKeys, externalId) + String(recordedMs)

/** Reads what `encodeMark` wrote. */
export function decodeMark(text: string): { readonly idHash: string; readonly recordedMs: number } {
  return { idHash: text.slice(0, MARK_HEX), recordedMs: Number(text.slice(MARK_HEX)) }
}
