import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, request as ask, type ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { Readable } from 'node:stream'
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'

import * as fc from 'fast-check'
import { describe, expect, it, onTestFinished, test } from 'vitest'

import { AdapterError } from '../../src/errors.ts'
import { type BodyOptions, formatBytes, Pieces, readBody, readRawBody } from '../../src/http/body.ts'
import { createSlicing } from '../../src/http/slices.ts'

const TEXT = Buffer.from('--B\r\nbody é\r\n--B--\r\n')

function read(chunks: Iterable<Buffer>, options: Partial<BodyOptions> = {}): Promise<Buffer> {
  return readBody(Readable.from(chunks, { objectMode: false }), {
    maxBytes: 1_000,
    contentEncoding: undefined,
    ...options,
  })
}

async function codeOf(reading: Promise<Buffer>): Promise<string> {
  const error = await reading.then(
    () => undefined,
    (cause: unknown) => cause,
  )
  return error instanceof AdapterError ? error.code : `no AdapterError: ${String(error)}`
}

describe('readBody', () => {
  const encodings: [contentEncoding: string | undefined, encode: (bytes: Buffer) => Buffer][] = [
    [undefined, (bytes) => bytes],
    ['', (bytes) => bytes],
    ['identity', (bytes) => bytes],
    ['utf-8', (bytes) => bytes],
    ['UTF8', (bytes) => bytes],
    ['iso-8859-1', (bytes) => bytes],
    ['gzip', gzipSync],
    [' X-GZip ', gzipSync],
    ['deflate', deflateSync],
    ['br', brotliCompressSync],
  ]

  it.each(encodings)(
    'reads a body in the encoding %j in two chunks, split at every offset (batch-wire F28, F29)',
    async (contentEncoding, encode) => {
      const sent = encode(TEXT)
      for (let cut = 0; cut <= sent.length; cut += 1) {
        const chunks = [sent.subarray(0, cut), sent.subarray(cut)].filter((chunk) => chunk.length > 0)
        expect(await read(chunks, { contentEncoding })).toEqual(TEXT)
      }
    },
  )

  it.each(encodings)(
    'reads a body in the encoding %j one byte at a time (batch-wire F28, F29)',
    async (contentEncoding, encode) => {
      const bytes = Array.from(encode(TEXT), (byte) => Buffer.of(byte))
      expect(await read(bytes, { contentEncoding })).toEqual(TEXT)
    },
  )

  it.each([1_023, 1_024, 1_025, 5_000])('joins %i tiny chunks in order', async (count) => {
    const bytes = Buffer.from(Array.from({ length: count }, (_, index) => index % 251))
    const chunks = Array.from(bytes, (byte) => Buffer.of(byte))
    expect(await read(chunks, { maxBytes: count })).toEqual(bytes)
    expect(await codeOf(read(chunks, { maxBytes: count - 1 }))).toBe('ADP_TOO_LARGE')
  })

  it('reads an empty body', async () => {
    expect(await read([])).toEqual(Buffer.alloc(0))
  })

  it('accepts a body of maxBytes and refuses a larger body', async () => {
    const exact = { maxBytes: TEXT.length, contentLength: String(TEXT.length) }
    expect(await read([TEXT], exact)).toEqual(TEXT)
    expect(await codeOf(read([TEXT], { maxBytes: TEXT.length - 1 }))).toBe('ADP_TOO_LARGE')
    expect(await codeOf(read([], { maxBytes: 9, contentLength: '10' }))).toBe('ADP_TOO_LARGE')
  })

  it('limits the decompressed size rather than the size on the wire (batch-wire F29)', async () => {
    const bomb = gzipSync(Buffer.alloc(20_000_000))
    let seen = 0
    const reading = read([bomb], {
      maxBytes: 100_000,
      contentEncoding: 'gzip',
      contentLength: String(bomb.length),
      onBytes: (count) => (seen += count),
    })
    expect(await codeOf(reading)).toBe('ADP_TOO_LARGE')
    expect(seen).toBeLessThanOrEqual(100_000)
    const random = randomBytes(10_000)
    const repeated = gzipSync(Buffer.concat(Array<Buffer>(100).fill(random)))
    const large = { maxBytes: 1_000_000, contentEncoding: 'gzip', contentLength: '30000000' }
    expect((await read([repeated], large)).length).toBe(1_000_000)
  })

  it('refuses a large body that expands to more than 200 times its size (batch-wire F27)', async () => {
    const options = { maxBytes: 33_554_432, contentEncoding: 'gzip' }
    let seen = 0
    const bomb = gzipSync(Buffer.alloc(30_000_000))
    const reading = read([bomb], { ...options, onBytes: (count) => (seen += count) })
    expect(await codeOf(reading)).toBe('ADP_TOO_LARGE')
    expect(seen).toBeLessThan(bomb.length * 200 + 65_536)
    expect((await read([gzipSync(Buffer.alloc(1_000_000))], options)).length).toBe(1_000_000)
  })

  it('reports each chunk before it is stored, so that the caller can refuse the chunk', async () => {
    const counts: number[] = []
    await read([Buffer.alloc(3), Buffer.alloc(4)], { onBytes: (count) => counts.push(count) })
    expect(counts).toEqual([3, 4])
    const refusing = (): never => {
      throw new AdapterError('ADP_OVERLOADED', 'full')
    }
    expect(await codeOf(read([TEXT], { onBytes: refusing }))).toBe('ADP_OVERLOADED')
  })

  it.each(['gzip, gzip', 'compress', 'zstd'])('refuses Content-Encoding %j', async (contentEncoding) => {
    expect(await codeOf(read([TEXT], { contentEncoding }))).toBe('ADP_CONTENT_ENCODING')
  })

  it.each([
    ['that is invalid', Buffer.from('no gzip')],
    ['that is truncated', gzipSync(TEXT).subarray(0, -1)],
    ['with a wrong checksum', Buffer.concat([gzipSync(TEXT).subarray(0, -8), Buffer.alloc(8)])],
  ])('refuses gzip %s (batch-wire F29)', async (_, sent) => {
    expect(await codeOf(read([sent], { contentEncoding: 'gzip' }))).toBe('ADP_BODY')
  })

  it.each([undefined, 'gzip'])(
    'rejects if the stream breaks off (Content-Encoding %j)',
    async (contentEncoding) => {
      const stream = new Readable({ read: () => undefined })
      stream.push(gzipSync(TEXT).subarray(0, 5))
      const reading = readBody(stream, { maxBytes: 100, contentEncoding })
      stream.destroy(new Error('reset'))
      expect(await codeOf(reading)).toBe('ADP_BODY')
    },
  )

  it.each([undefined, 'gzip'])(
    'rejects if the client disconnects (Content-Encoding %j)',
    async (contentEncoding) => {
      const { code } = await post({ contentEncoding, maxBytes: 1_000 }, '20\r\n\u001f\u008b\u0008', true)
      expect(code).toBe('ADP_BODY')
    },
  )

  it.each([
    ['too large', { maxBytes: 3 }, 'ADP_TOO_LARGE'],
    [
      'refused by the caller',
      {
        onBytes: () => {
          throw new AdapterError('ADP_OVERLOADED', 'full')
        },
      },
      'ADP_OVERLOADED',
    ],
  ])('keeps the connection open for the reply if a chunked body is %s', async (_, options, expected) => {
    const { code, reply } = await post(
      { maxBytes: 1_000, contentEncoding: undefined, ...options },
      '5\r\n12345\r\n',
      false,
    )
    expect(code).toBe(expected)
    expect(reply).toContain('HTTP/1.1 413 Payload Too Large')
  })
})

/** Posts a chunked body to a server that answers 413 after `readBody`. If `leave` is true, the client disconnects after `chunks`. */
async function post(
  options: BodyOptions,
  chunks: string,
  leave: boolean,
): Promise<{ code: string; reply: string }> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  const replyChunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => replyChunks.push(chunk))
  socket.write(`POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}`, 'latin1')
  const [request, response] = (await once(server, 'request')) as [IncomingMessage, ServerResponse]
  const reading = codeOf(readBody(request, options))
  if (leave) socket.destroy()
  const code = await reading
  if (!leave) {
    response.writeHead(413, { Connection: 'close' }).end()
    await once(socket, 'close')
  }
  server.close()
  return { code, reply: Buffer.concat(replyChunks).toString('latin1') }
}

it('readBody refuses a body if the client disconnected before the body was complete', async () => {
  const { promise, resolve } = Promise.withResolvers<unknown>()
  const server = createServer((request) => {
    request.once('close', () => {
      readRawBody(request, 1_000, () => undefined).then(resolve, resolve)
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  const client = ask({ port, host: '127.0.0.1', method: 'POST', headers: { 'Content-Length': '10' } })
  client.on('error', () => undefined)
  client.write('half')
  await once(client, 'socket')
  server.once('request', () => client.destroy())
  expect(await promise).toMatchObject({ code: 'ADP_BODY' })
})

const chunks = fc.array(
  fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
  { maxLength: 600 },
)

it('readBody joins the bytes in the order of the chunks', async () => {
  await fc.assert(
    fc.asyncProperty(chunks, async (all) => {
      const pieces = new Pieces()
      for (const chunk of all) pieces.add(chunk)
      const whole = Buffer.concat(all)
      expect(pieces.size).toBe(whole.length)
      expect(pieces.join().equals(whole)).toBe(true)
      expect((await pieces.joinInSlices(createSlicing().open())).equals(whole)).toBe(true)
    }),
  )
})

test.each([
  [0, '0 bytes'],
  [1_023, '1023 bytes'],
  [1_024, '1 KiB'],
  [65_536, '64 KiB'],
  [65_537, '64.1 KiB'],
  [1_048_576, '1 MiB'],
  [1_048_577, '1.1 MiB'],
  [1_258_291, '1.2 MiB'],
  [33_554_432, '32 MiB'],
])('formatBytes shows %i bytes as %s', (bytes, text) => {
  expect(formatBytes(bytes)).toBe(text)
})
