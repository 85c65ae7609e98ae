import { promisify } from 'node:util'
import { brotliDecompress, gunzip, inflate } from 'node:zlib'

const decoders = new Map([
  ['gzip', promisify(gunzip)],
  ['x-gzip', promisify(gunzip)],
  ['deflate', promisify(inflate)],
  ['br', promisify(brotliDecompress)],
])

/** The encoding of a body, in lower case, as a field names it; undefined: it has none. */
export function contentEncoding(field: string | undefined): string | undefined {
  const encoding = field?.trim().toLowerCase() ?? ''
  return encoding === '' || encoding === 'identity' ? undefined : encoding
}

/** A body without its encoding, decoded off the event loop; why it cannot be read, or has more than `maxBytes` without it. */
export async function decodeBody(
  body: Buffer,
  encoding: string | undefined,
  maxBytes: number,
): Promise<Buffer | 'tooLarge' | 'encoding'> {
  if (encoding === undefined) return body
  const decode = decoders.get(encoding)
  if (decode === undefined) return 'encoding'
  try {
    return await decode(body, { maxOutputLength: Math.max(1, maxBytes) })
  } catch (cause) {
    const isLonger = cause instanceof Error && 'code' in cause && cause.code === 'ERR_BUFFER_TOO_LARGE'
    return isLonger ? 'tooLarge' : 'encoding'
  }
}
