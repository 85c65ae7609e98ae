import type { Slices } from '../../http/slices.ts'
import { type Exchange, headerOf } from './exchange.ts'
import { isKeptHeader, type MaskedLine, maskLines, maskTarget, maskTokens } from './mask-credentials.ts'
import { splitMessage } from './split-message.ts'

/** The cost of a byte, and of a piece besides, in bytes of a batch that is decoded. */
const [BYTE_WORK, PIECE_WORK] = [2, 512]

/** Takes credentials out of an exchange: headers that are not on the list, options of queries that are not OData's, tokens in texts. */
export async function maskExchange(exchange: Exchange, slices: Slices): Promise<Exchange> {
  const { target, contentType, body, reply } = exchange
  return {
    ...exchange,
    target: maskTarget(target),
    body: await maskBody(body, contentType, slices),
    reply: {
      ...reply,
      headers: reply.headers.filter(([name]) => isKeptHeader(name)),
      body: await maskBody(reply.body, headerOf(reply.headers, 'content-type'), slices),
    },
  }
}

async function maskBody(body: Buffer, contentType: string | undefined, slices: Slices): Promise<Buffer> {
  const masked: Buffer[] = []
  const known = new Map<string, MaskedLine>()
  for (const { isFraming, bytes } of splitMessage(body, contentType)) {
    const text = bytes.toString('latin1')
    const shown = isFraming ? maskLines(text, known) : maskTokens(text)
    masked.push(shown === text ? bytes : Buffer.from(shown, 'latin1'))
    if (slices.spend(bytes.length * BYTE_WORK + PIECE_WORK)) await slices.next()
  }
  return Buffer.concat(masked)
}
