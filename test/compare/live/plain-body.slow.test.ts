import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'

import { describe, expect, it } from 'vitest'

import { type OfferedRead, plainBody, sizeOf } from '../../../src/compare/live/exchange.ts'
import type { WireReply } from '../../../src/compare/wire-exchange.ts'

const MIB = 1_048_576
const replyOf = (encoding: string | undefined, body: Buffer): WireReply => ({
  status: 200,
  reason: 'OK',
  fields: encoding === undefined ? [] : ['Content-Encoding', encoding],
  body,
})
const sizeOfReply = (reply: WireReply): number =>
  sizeOf({ target: '', request: { fields: [] }, reply } as unknown as OfferedRead)

/** Text that compresses to about a third. */
const text = Buffer.from(Array.from({ length: 9_000 }, (_, at) => `${at * 7_919} mark`).join(' '))

describe('plainBody', () => {
  const encodings: [string | undefined, (body: Buffer) => Buffer][] = [
    [undefined, (body) => body],
    ['gzip', gzipSync],
    [' X-GZIP ', gzipSync],
    ['deflate', deflateSync],
    ['br', brotliCompressSync],
  ]
  it.each(encodings)(
    'decodes a body with the encoding %s unless the result exceeds the estimated size of the reply',
    async (encoding, encode) => {
      const reply = replyOf(encoding, encode(text))
      expect(await plainBody(reply)).toEqual(text)
      expect(sizeOfReply(reply)).toBeGreaterThanOrEqual(text.length)
      const large = replyOf(encoding, encode(Buffer.alloc(64 * MIB, 'a')))
      expect(sizeOfReply(large)).toBeLessThanOrEqual(
        encoding === undefined ? 64 * MIB : MIB + (large.body?.length ?? 0),
      )
      if (encoding !== undefined) expect(await plainBody(large)).toBe('tooLarge')
    },
  )

  it('returns "tooLarge" for a gzip body that decompresses to more than its trailer announces', async () => {
    const body = gzipSync(text)
    expect(sizeOfReply(replyOf('gzip', body))).toBe(body.length + text.length)
    const short = Buffer.from(body)
    short.writeUInt32LE(100, short.length - 4)
    expect(sizeOfReply(replyOf('gzip', short))).toBe(body.length + 100)
    expect(await plainBody(replyOf('gzip', short))).toBe('tooLarge')
  })

  it('returns "encoding" for bytes that do not match their content encoding', async () => {
    for (const encoding of ['gzip', 'deflate', 'br', 'zstd']) {
      expect(await plainBody(replyOf(encoding, Buffer.from('plain')))).toBe('encoding')
      expect(await plainBody(replyOf(encoding, Buffer.alloc(0)))).toBe('encoding')
    }
  })
})
