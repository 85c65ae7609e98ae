import { createRequire, syncBuiltinESMExports } from 'node:module'
import type * as Crypto from 'node:crypto'

// Loaded before the journal: what it keeps is not compressed. That costs a tenth of a history, and its threads are not simulated.

const require = createRequire(import.meta.url)
const zlib = require('node:zlib') as Record<string, unknown>

// As with the real functions, nothing is some bytes.
const add = (bytes: Uint8Array): Uint8Array => Buffer.concat([Buffer.from([1]), bytes])
const take = (bytes: Uint8Array): Uint8Array => bytes.subarray(1)
const later =
  (change: typeof add) =>
  (bytes: Uint8Array, ...given: unknown[]): void => {
    const done = given.at(-1) as (error: null, bytes: Uint8Array) => void
    queueMicrotask(() => done(null, change(bytes)))
  }

zlib['zstdCompressSync'] = add
zlib['zstdDecompressSync'] = take
zlib['zstdCompress'] = later(add)
zlib['zstdDecompress'] = later(take)

// Keys that are given as bytes cost Node.js five times what those of its own kind do, which is another tenth.

const crypto = require('node:crypto') as { -readonly [Name in keyof typeof Crypto]: (typeof Crypto)[Name] }
const { createHmac, createCipheriv, createDecipheriv, createSecretKey } = crypto
const known = new WeakMap<object, Crypto.KeyObject>()

function toKey<Key>(key: Key): Key | Crypto.KeyObject {
  if (!(key instanceof Uint8Array)) return key
  const made = known.get(key) ?? createSecretKey(key)
  known.set(key, made)
  return made
}

crypto.createHmac = (name, key, options) => createHmac(name, toKey(key), options)
crypto.createCipheriv = ((name: string, key: Crypto.CipherKey, ...given: [Crypto.BinaryLike]) =>
  createCipheriv(name, toKey(key), ...given)) as typeof createCipheriv
crypto.createDecipheriv = ((name: string, key: Crypto.CipherKey, ...given: [Crypto.BinaryLike]) =>
  createDecipheriv(name, toKey(key), ...given)) as typeof createDecipheriv
syncBuiltinESMExports()
