import { promisify } from 'node:util'
import { brotliDecompress, gunzip, inflate } from 'node:zlib'

import type { Side } from '../rollout/index.ts'

/** A message as it was on the connection of a client. */
export interface WireMessage {
  /** Name, value, name, value. */
  readonly fields: readonly string[]
  /** Undefined: it was too large to be copied. */
  readonly body: Buffer | undefined
}

export interface WireReply extends WireMessage {
  readonly status: number
  readonly reason: string
}

/** An exchange of a client as it was on its connection, whichever side served it. */
export interface WireExchange {
  readonly method: string
  /** Path and query, as the client wrote them. */
  readonly target: string
  readonly request: WireMessage
  readonly reply: WireReply
  readonly served: Side
  /** Milliseconds since the epoch. */
  readonly receivedMs: number
  /** From the arrival of the request to the end of the reply. */
  readonly durationMs: number
}

/** The first value of a field. `name` in lower case. */
export function fieldOf({ fields }: Pick<WireMessage, 'fields'>, name: string): string | undefined {
  const at = fields.findIndex((field, index) => index % 2 === 0 && field.toLowerCase() === name)
  return at === -1 ? undefined : fields[at + 1]
}

const decoders = new Map([
  ['gzip', promisify(gunzip)],
  ['x-gzip', promisify(gunzip)],
  ['deflate', promisify(inflate)],
  ['br', promisify(brotliDecompress)],
])

/** The encoding of the body of a message, in lower case; undefined: it has none. */
export function encodingOf(message: Pick<WireMessage, 'fields'>): string | undefined {
  const encoding = fieldOf(message, 'content-encoding')?.trim().toLowerCase() ?? ''
  return encoding === '' || encoding === 'identity' ? undefined : encoding
}

/** The body of a message without its encoding, decoded off the event loop; why it cannot be read, or has more than `maxBytes` without it. */
export async function decodeBody(
  message: WireMessage,
  maxBytes: number,
): Promise<Buffer | 'tooLarge' | 'encoding'> {
  const { body } = message
  if (body === undefined) return 'tooLarge'
  const encoding = encodingOf(message)
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
