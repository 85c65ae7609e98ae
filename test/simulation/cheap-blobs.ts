import { createRequire, syncBuiltinESMExports } from 'node:module'

// This module is loaded before the journal. It replaces the compression of stored requests and replies by functions that only add a byte,
// because compression takes a tenth of the time of a simulated history, and its threads cannot be simulated.

const require = createRequire(import.meta.url)
const zlib = require('node:zlib') as Record<string, unknown>

// Like the real compression, this function returns at least one byte even for an empty input.
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
syncBuiltinESMExports()
