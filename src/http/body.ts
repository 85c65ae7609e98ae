import type { IncomingMessage } from 'node:http'
import type { Readable, Transform } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'

import type { Clock } from '../clock.ts'
import { AdapterError } from '../errors.ts'
import { encodingOf } from './media-type.ts'
import type { Slices } from './slices.ts'

export interface BodyOptions {
  /** Maximum size of the body after decompression, in bytes. */
  readonly maxBytes: number
  /** The request's `Content-Encoding`. `undefined`, `identity` or the name of a charset means no compression (RFC 9110 8.4). */
  readonly contentEncoding: string | undefined
  /** The request's `Content-Length`. If it exceeds `maxBytes`, the body is refused before it is read. */
  readonly contentLength?: string | undefined
  /** Maximum ratio of the decompressed to the compressed size, checked for bodies over 1 MiB. Default: `MAX_INFLATION`. */
  readonly maxInflation?: number
  /** Called with the size of each chunk in bytes before the chunk is stored. May throw to refuse the rest of the body. */
  readonly onBytes?: (count: number) => void
  /** The slices in which a large body is joined. If `undefined`, the body is joined in one step. */
  readonly slices?: Slices | undefined
}

/**
 * The default maximum ratio. Real records compress to a thirtieth at best, one repeated record to a hundredth, and zeros to a thousandth.
 */
const MAX_INFLATION = 200
/** Size in bytes up to which the ratio is not checked, because a small body costs little. */
const FREE_BYTES = 1_048_576

/**
 * Reads and decompresses a whole request body (batch-wire F27, F29). Checks the limits while the body arrives, so that a small gzip body
 * never becomes a large buffer. Throws `ADP_TOO_LARGE`, `ADP_CONTENT_ENCODING`, or `ADP_BODY` if the compression is broken or the client
 * disconnected.
 */
export async function readBody(stream: Readable, options: BodyOptions): Promise<Buffer> {
  const { maxBytes, contentEncoding, maxInflation = MAX_INFLATION } = options
  const decompress = decompressorFor(contentEncoding)
  if (decompress === undefined && Number(options.contentLength) > maxBytes)
    throw tooLarge(maxBytes, Number(options.contentLength))
  const pieces = new Pieces()
  let compressed = 0
  if (decompress !== undefined)
    stream.on('data', (chunk: Buffer) => {
      compressed += chunk.length
    })
  const source = decompress === undefined ? stream : stream.pipe(decompress)
  // `pipe` does not forward errors, so this handler ends the loop below when the client disconnects.
  const onLost = (cause?: Error): void => {
    decompress?.destroy(cause ?? disconnectedBeforePost())
  }
  stream.once('error', onLost).once('aborted', onLost)
  try {
    for await (const chunk of source as AsyncIterable<Buffer>) {
      if (pieces.size + chunk.length > maxBytes) throw tooLarge(maxBytes)
      const inflates = decompress !== undefined && pieces.size > FREE_BYTES
      if (inflates && pieces.size > compressed * maxInflation) throw inflated()
      options.onBytes?.(chunk.length)
      pieces.add(chunk)
    }
  } catch (cause) {
    stream.unpipe()
    if (cause instanceof AdapterError) throw cause
    throw new AdapterError(
      'ADP_BODY',
      'The body ended early or its compression is broken. Nothing was posted. Send the whole body again.',
      { cause },
    )
  } finally {
    stream.off('error', onLost).off('aborted', onLost)
  }
  return options.slices === undefined ? pieces.join() : pieces.joinInSlices(options.slices)
}

function decompressorFor(contentEncoding: string | undefined): Transform | undefined {
  const encoding = (contentEncoding ?? '').trim().toLowerCase()
  if (encoding === '' || encoding === 'identity') return undefined
  if (encoding === 'gzip' || encoding === 'x-gzip') return createGunzip()
  if (encoding === 'deflate') return createInflate()
  if (encoding === 'br') return createBrotliDecompress()
  // Some clients send the name of a charset as the Content-Encoding (batch-wire F29). Their bodies are not compressed.
  if (encodingOf(encoding) !== undefined) return undefined
  throw new AdapterError(
    'ADP_CONTENT_ENCODING',
    'The Content-Encoding must be gzip, deflate, br or none. Nothing was posted. Send the body again with one of these.',
  )
}

/** Creates the error for a body that is too large. `bytes` is the size of the body, or `undefined` if the body was not read to its end. */
export function tooLarge(maxBytes: number, bytes?: number): AdapterError {
  const limit = formatBytes(maxBytes)
  const size =
    bytes === undefined
      ? `larger than the limit of ${limit}`
      : `${formatBytes(bytes)} long; the limit is ${limit}`
  return new AdapterError('ADP_TOO_LARGE', `The body is ${size}. Nothing was posted. Send smaller batches.`)
}

function inflated(): AdapterError {
  return new AdapterError(
    'ADP_TOO_LARGE',
    `The compressed body expands to more than ${MAX_INFLATION} times its size. Nothing was posted. Send the body uncompressed, or send smaller batches.`,
  )
}

function disconnectedBeforePost(): AdapterError {
  return new AdapterError('ADP_BODY', 'The client disconnected before its body ended. Nothing was posted.')
}

/**
 * Reads the body of a request without decompressing it. If the body is larger than `maxBytes`, returns `undefined` and puts the bytes back
 * into the request, so that the request can be forwarded as a stream. Throws `ADP_BODY` if the client disconnected, and the errors of
 * `onBytes`.
 */
export async function readRawBody(
  request: IncomingMessage,
  maxBytes: number,
  onBytes: (count: number) => void,
): Promise<Buffer | undefined> {
  if (Number(request.headers['content-length']) > maxBytes) return undefined
  // The client may have disconnected while its write waited for a change of the stage. `close` was then already emitted and would never
  // arrive.
  if (request.destroyed) throw disconnectedBeforeRelay()
  const pieces = new Pieces()
  return new Promise((resolve, reject) => {
    const stopReading = (finish: () => void): void => {
      request.off('data', onData).off('end', onEnd).off('error', onLost).off('close', onLost)
      finish()
    }
    const onData = (chunk: Buffer): void => {
      try {
        onBytes(chunk.length)
      } catch (cause) {
        stopReading(() => reject(cause instanceof AdapterError ? cause : disconnectedBeforeRelay()))
        return
      }
      pieces.add(chunk)
      if (pieces.size <= maxBytes) return
      request.pause()
      stopReading(() => {
        request.unshift(pieces.join())
        resolve(undefined)
      })
    }
    const onEnd = (): void => stopReading(() => resolve(pieces.join()))
    const onLost = (): void => stopReading(() => reject(disconnectedBeforeRelay()))
    request.on('data', onData).once('end', onEnd).once('error', onLost).once('close', onLost)
  })
}

const disconnectedBeforeRelay = (): AdapterError =>
  new AdapterError('ADP_BODY', 'The client disconnected before its body ended. Nothing was sent.')

/**
 * Resolves once the whole body or its first 64 KiB have arrived. Also resolves if the client disconnects, or after `waitMs` milliseconds if
 * it is set. The body stays buffered in the request. `onBytes` receives the number of bytes since its last call and may throw to refuse the
 * rest of the body.
 */
export function bodyArrival(
  request: IncomingMessage,
  onBytes: (count: number) => void,
  { clock, waitMs }: { readonly clock: Clock; readonly waitMs: number | undefined },
): Promise<void> {
  if (!hasBody(request)) return Promise.resolve()
  return new Promise((resolve, reject) => {
    let counted = 0
    const finish = (report: () => void): void => {
      cancel?.()
      request.off('readable', check).off('close', stop).off('error', stop)
      report()
    }
    const stop = (): void => finish(resolve)
    const check = (): void => {
      const { readableLength } = request
      try {
        onBytes(readableLength - counted)
      } catch (cause) {
        if (!(cause instanceof AdapterError)) throw cause
        finish(() => reject(cause))
        return
      }
      counted = readableLength
      if (request.complete || readableLength >= request.readableHighWaterMark) finish(resolve)
    }
    const cancel = waitMs === undefined ? undefined : clock.after(waitMs, stop)
    request.on('readable', check).once('close', stop).once('error', stop)
    check()
  })
}

/** Returns the bytes of the body that have arrived. The bytes stay in the request for a later reader. */
export function peekBody(request: IncomingMessage): Buffer {
  // The size is given because a read of more bytes than the buffer holds would end the stream.
  const bytes: unknown = request.readableLength > 0 ? request.read(request.readableLength) : undefined
  if (!Buffer.isBuffer(bytes)) return Buffer.alloc(0)
  request.unshift(bytes)
  return bytes
}

/** Returns true while some of the request body has not arrived yet. */
export function hasBody(request: IncomingMessage): boolean {
  return !request.complete && isFramed(request)
}

/** Returns true if the headers announce a body (RFC 9112 6.3). */
export function isFramed({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

/** Throws `ADP_CONTENT_ENCODING` for a transfer coding that Node.js does not decode (RFC 9112 6.1). */
export function checkTransferCoding({ headers }: Pick<IncomingMessage, 'headers'>): void {
  const coding = headers['transfer-encoding']
  if (coding !== undefined && coding.toLowerCase() !== 'chunked')
    throw new AdapterError(
      'ADP_CONTENT_ENCODING',
      'The Transfer-Encoding must be chunked or absent. Nothing was sent. Send the request again with one of these.',
    )
}

const UNITS = [
  ['MiB', 1_048_576],
  ['KiB', 1_024],
] as const

/**
 * Formats a size as `1 MiB`, `1.2 MiB`, `64 KiB` or `512 bytes`. Rounds up, so that a size just over a limit does not look equal to the
 * limit.
 */
export function formatBytes(bytes: number): string {
  const [unit, size] = UNITS.find(([, own]) => bytes >= own) ?? []
  return size === undefined ? `${bytes} bytes` : `${Math.ceil((bytes / size) * 10) / 10} ${unit}`
}

/** The number of chunks that are collected before they are joined into one block. */
const MAX_CHUNKS = 256
/** The mean size of chunks in bytes from which joining is not worthwhile: such chunks take little extra memory. */
const LARGE_CHUNK = 4_096
/** The cost of copying a byte, relative to the cost of decoding a byte. */
const COPY_COST = 1 / 4

/** Collects the bytes of a body. Joins small chunks regularly, because each chunk has a memory overhead that the limits do not count. */
export class Pieces {
  size = 0
  private blocks: Buffer[] = []
  private chunks: Buffer[] = []
  private chunksSize = 0

  add(chunk: Buffer): void {
    this.size += chunk.length
    this.chunksSize += chunk.length
    this.chunks.push(chunk)
    if (this.chunks.length < MAX_CHUNKS) return
    if (this.chunksSize >= MAX_CHUNKS * LARGE_CHUNK) this.blocks.push(...this.chunks)
    else this.blocks.push(Buffer.concat(this.chunks))
    this.chunks = []
    this.chunksSize = 0
    // Blocks of tiny chunks are small too, so they are joined again.
    if (this.blocks.length % MAX_CHUNKS === 0 && this.size < this.blocks.length * LARGE_CHUNK)
      this.blocks = [Buffer.concat(this.blocks)]
  }

  join(): Buffer {
    const [only, second] = this.chunks
    // Most bodies are one chunk, which needs no copy.
    if (only !== undefined && second === undefined && this.blocks.length === 0) return only
    return Buffer.concat([...this.blocks, ...this.chunks])
  }

  /** Joins the body in slices, so that other requests are served between the copies. */
  async joinInSlices(slices: Slices): Promise<Buffer> {
    const all = [...this.blocks, ...this.chunks]
    const [first] = all
    if (first !== undefined && all.length === 1) return first
    const joined = Buffer.allocUnsafe(this.size)
    let at = 0
    for (const piece of all) {
      at += piece.copy(joined, at)
      if (slices.spend(piece.length * COPY_COST)) await slices.next()
    }
    return joined
  }
}
