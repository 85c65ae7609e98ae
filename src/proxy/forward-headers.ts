import type { IncomingMessage } from 'node:http'

import { connectionOptions, hopByHopHeaders } from '../http/hop-by-hop.ts'
import type { V3Credentials } from '../v3/index.ts'

/**
 * What a client cannot have removed by naming it in `Connection`: without the framing, the body would be read as the next
 * request on the upstream's connection.
 */
const kept: readonly string[] = [
  'content-length',
  'transfer-encoding',
  'host',
  'authorization',
  'ocp-apim-subscription-key',
  'x-forwarded-for',
  'x-forwarded-proto',
  'x-forwarded-host',
]

/**
 * Turns the headers of a request into those of the next hop, in place (RFC 9110 7.6.1): no hop-by-hop fields, and the
 * partner's key and token. `Expect` ends here too: Node has answered it.
 */
export function forwardHeaders(request: IncomingMessage, credentials: V3Credentials): void {
  const { headers } = request
  const dropped = new Set([...hopByHopHeaders, ...connectionOptions(headers.connection), 'expect'])
  for (const name of kept) dropped.delete(name)
  for (const name of Object.keys(headers)) if (dropped.has(name)) Reflect.deleteProperty(headers, name)
  headers['ocp-apim-subscription-key'] = credentials.subscriptionKey
  headers.authorization = credentials.authorization
}
