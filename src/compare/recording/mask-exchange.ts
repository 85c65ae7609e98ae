import type { Exchange } from './exchange.ts'
import { isKeptHeader, maskLines, maskTarget, maskTokens } from './mask-credentials.ts'
import { splitMessage } from './split-message.ts'

/** Takes credentials out of an exchange: headers that are not on the list, options of queries that are not OData's, tokens in texts. */
export function maskExchange(exchange: Exchange): Exchange {
  const { target, contentType, body, reply } = exchange
  return {
    ...exchange,
    target: maskTarget(target),
    body: maskBody(body, contentType),
    reply: {
      ...reply,
      headers: reply.headers.filter(([name]) => isKeptHeader(name)),
      body: maskBody(reply.body, reply.headers.find(([name]) => name.toLowerCase() === 'content-type')?.[1]),
    },
  }
}

function maskBody(body: Buffer, contentType: string | undefined): Buffer {
  const masked = splitMessage(body, contentType).map(({ isFraming, bytes }) => {
    const text = bytes.toString('latin1')
    return Buffer.from(isFraming ? maskLines(text) : maskTokens(text), 'latin1')
  })
  return Buffer.concat(masked)
}
