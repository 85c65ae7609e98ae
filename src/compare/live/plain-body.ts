import { promisify } from 'node:util'
import { brotliDecompress, gunzip, inflate } from 'node:zlib'

import { encodingOf, type OfferedReply, plainBytesOf } from './offered-exchange.ts'

const decoders = new Map([
  ['gzip', promisify(gunzip)],
  ['x-gzip', promisify(gunzip)],
  ['deflate', promisify(inflate)],
  ['br', promisify(brotliDecompress)],
])

/** The body of a reply without its encoding, read off the event loop, with as many bytes as `plainBytesOf` says at most; or why it cannot be read. */
export async function plainBody(reply: OfferedReply): Promise<Buffer | 'tooLarge' | 'encoding'> {
  const { body } = reply
  if (body === undefined) return 'tooLarge'
  const encoding = encodingOf(reply)
  if (encoding === undefined) return body
  const decode = decoders.get(encoding)
  if (decode === undefined) return 'encoding'
  try {
    return await decode(body, { maxOutputLength: Math.max(1, plainBytesOf(reply)) })
  } catch (cause) {
    const isLonger = cause instanceof Error && 'code' in cause && cause.code === 'ERR_BUFFER_TOO_LARGE'
    return isLonger ? 'tooLarge' : 'encoding'
  }
}
