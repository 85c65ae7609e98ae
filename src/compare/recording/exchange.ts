import { decodeBody, type WireExchange, type WireMessage, type WireReply } from '../wire-exchange.ts'

export type RecordedMessage = WireMessage & { readonly body: Buffer }

/**
 * A V2 request and its reply. The target begins with the V2 route (`/V2/Attendance/$batch`), since the path before the route would identify
 * an installation. The request has only the header fields of `keptFieldsOf`, and a read has no body.
 */
export interface RecordedExchange extends WireExchange {
  readonly request: RecordedMessage
  readonly reply: WireReply & RecordedMessage
}

export const MAX_EXCHANGE_BYTES = 4_194_304

/**
 * Decompresses the reply of an exchange. Returns `undefined` if the exchange is too large, or if a body is missing or cannot be decoded.
 */
export async function toRecorded(exchange: WireExchange): Promise<RecordedExchange | undefined> {
  const { request, reply } = exchange
  // An empty body has nothing to decode, even if a header names an encoding.
  const body = reply.body?.length === 0 ? reply.body : await decodeBody(reply, MAX_EXCHANGE_BYTES)
  if (request.body === undefined || !Buffer.isBuffer(body)) return undefined
  if (request.body.length + body.length > MAX_EXCHANGE_BYTES) return undefined
  return { ...exchange, request: { ...request, body: request.body }, reply: { ...reply, body } }
}
