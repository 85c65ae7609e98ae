import { decodeBody, type WireExchange, type WireMessage, type WireReply } from '../wire-exchange.ts'

/** A message whose body has no content encoding. */
export type RecordedMessage = WireMessage & { readonly body: Buffer }

/**
 * A request of a V2 client and V2's reply to it. The target begins with the route of V2 (`/V2/Attendance/$batch`), since the path before the route
 * names an installation. The request has only the fields of `keptFieldsOf`, and the body of a read is empty.
 */
export interface RecordedExchange extends WireExchange {
  readonly request: RecordedMessage
  readonly reply: WireReply & RecordedMessage
}

/** Larger exchanges are not recorded. */
export const MAX_EXCHANGE_BYTES = 4_194_304

/** Removes the content encoding of the reply. Returns `undefined` for an exchange that is too large, or whose bodies cannot be read. */
export async function toRecorded(exchange: WireExchange): Promise<RecordedExchange | undefined> {
  const { request, reply } = exchange
  // An empty body has no encoding to remove.
  const body = reply.body?.length === 0 ? reply.body : await decodeBody(reply, MAX_EXCHANGE_BYTES)
  if (request.body === undefined || !Buffer.isBuffer(body)) return undefined
  if (request.body.length + body.length > MAX_EXCHANGE_BYTES) return undefined
  return { ...exchange, request: { ...request, body: request.body }, reply: { ...reply, body } }
}
