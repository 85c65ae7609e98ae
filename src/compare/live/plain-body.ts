import { promisify } from 'node:util'
import { brotliDecompress, gunzip, inflate } from 'node:zlib'

import { fieldOf, type OfferedReply } from './offered-exchange.ts'

/** A larger reply is read by its client alone. */
const MAX_BYTES = 16_777_216

const decoders = new Map([
  ['gzip', promisify(gunzip)],
  ['x-gzip', promisify(gunzip)],
  ['deflate', promisify(inflate)],
  ['br', promisify(brotliDecompress)],
])

/** The body of a reply without its encoding, read off the event loop; or why it cannot be read. */
export async function plainBody(reply: OfferedReply): Promise<Buffer | 'tooLarge' | 'encoding'> {
  const { body } = reply
  if (body === undefined) return 'tooLarge'
  const encoding = fieldOf(reply, 'content-encoding')?.trim().toLowerCase() ?? 'identity'
  if (encoding === 'identity' || encoding === '') return body
  const decode = decoders.get(encoding)
  if (decode === undefined) return 'encoding'
  try {
    return await decode(body, { maxOutputLength: MAX_BYTES })
  } catch {
    return 'encoding'
  }
}
