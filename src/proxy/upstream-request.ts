import type { IncomingMessage } from 'node:http'
import { PassThrough } from 'node:stream'

import { connectionOptions, hopByHopHeaders } from '../http/hop-by-hop.ts'
import type { V3Credentials } from '../v3/index.ts'

/**
 * What a client cannot have removed by naming it in `Connection`: without the framing, the body would be read as the next
 * request on the upstream's connection.
 */
const kept: ReadonlySet<string> = new Set([
  'content-length',
  'host',
  'authorization',
  'ocp-apim-subscription-key',
  'x-forwarded-for',
  'x-forwarded-proto',
  'x-forwarded-host',
])
/** Set anew for the next hop; Node has answered `Expect`. */
const replaced: ReadonlySet<string> = new Set([
  ...hopByHopHeaders,
  'host',
  'authorization',
  'ocp-apim-subscription-key',
  'expect',
])

/**
 * The fields of a request for the next hop (RFC 9110 7.6.1): no hop-by-hop fields, and the partner's key and token. `identity`:
 * ask for a body that is not encoded.
 */
export function toUpstreamFields(
  request: IncomingMessage,
  credentials: V3Credentials,
  identity: boolean,
): string[] {
  const { headers } = request
  const named = connectionOptions(headers.connection)
  const fields: string[] = []
  for (const name in headers) {
    const value = headers[name]
    if (value === undefined || replaced.has(name)) continue
    if (named.length > 0 && named.includes(name) && !kept.has(name)) continue
    if (identity && name === 'accept-encoding') continue
    if (typeof value === 'string') fields.push(name, value)
    else for (const one of value) fields.push(name, one)
  }
  fields.push('x-forwarded-port', portOf(request))
  if (identity) fields.push('accept-encoding', 'identity')
  fields.push(
    'ocp-apim-subscription-key',
    credentials.subscriptionKey,
    'authorization',
    credentials.authorization,
  )
  return fields
}

/** The port that the client asked for. */
function portOf({ headers }: IncomingMessage): string {
  const port = /:(\d+)$/.exec(headers.host ?? '')?.[1]
  return port ?? (headers['x-forwarded-proto'] === 'https' ? '443' : '80')
}

/**
 * The body of a request for the next hop: whole where it has arrived, else a stream of its own, since undici destroys a stream
 * whose call fails, and the client is still to be answered then.
 */
export function toUpstreamBody(request: IncomingMessage): Buffer | PassThrough | null {
  const { headers } = request
  if (headers['transfer-encoding'] === undefined && !(Number(headers['content-length']) > 0)) return null
  if (request.complete) return (request.read() as Buffer | null) ?? null
  const body = new PassThrough()
  request.pipe(body)
  body.on('error', () => undefined) // the call reports it
  // After `pipe`, which pauses the request then: the rest of the upload is read and dropped, so that the client gets its answer.
  body.on('close', () => request.resume())
  return body
}
