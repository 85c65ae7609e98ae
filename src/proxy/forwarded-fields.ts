import type { IncomingMessage } from 'node:http'

import { endToEndFields } from '../http/hop-by-hop.ts'
import type { ReplyHead } from '../upstream/index.ts'
import type { V3Credentials } from '../v3/index.ts'
import { holdsCredential } from './added-credentials.ts'

/**
 * What a client cannot have removed by naming it in `Connection`: without the framing, the body would be read as the next
 * request on the upstream's connection.
 */
const KEPT: ReadonlySet<string> = new Set(['content-length', 'authorization', 'ocp-apim-subscription-key'])
/** Set anew for the next hop; Node has answered `Expect`. `replaceForwarding` has set the forwarding fields. */
const FORWARDED = ['x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host'] as const
const REPLACED: ReadonlySet<string> = new Set([...FORWARDED, 'x-forwarded-port', 'host', 'expect'])
const CREDENTIALS: ReadonlySet<string> = new Set(['authorization', 'ocp-apim-subscription-key'])

/**
 * The fields of a request for the next hop (RFC 9110 7.6.1), in the client's order and case; `Host` is left to the connection.
 * `credentials` take the place of the client's own; `identity`: ask for a body that is not encoded.
 */
export function toUpstreamFields(
  request: IncomingMessage,
  { credentials, identity }: { readonly credentials: V3Credentials | undefined; readonly identity: boolean },
): string[] {
  const { rawHeaders, headers } = request
  const fields = fieldsOf(endToEndFields(rawHeaders, KEPT), (name) => {
    // Fields that `replaceForwarding` has removed are not among the parsed ones any more.
    if (headers[name] === undefined || REPLACED.has(name)) return false
    if (identity && name === 'accept-encoding') return false
    return credentials === undefined || !CREDENTIALS.has(name)
  })
  for (const name of FORWARDED) {
    const value = headers[name]
    if (typeof value === 'string') fields.push(name, value)
  }
  fields.push('x-forwarded-port', portOf(request))
  if (identity) fields.push('accept-encoding', 'identity')
  if (credentials !== undefined) {
    fields.push('ocp-apim-subscription-key', credentials.subscriptionKey)
    fields.push('authorization', credentials.authorization)
  }
  return fields
}

/** The port that the client asked for. */
function portOf({ headers }: IncomingMessage): string {
  const port = /:(\d+)$/.exec(headers.host ?? '')?.[1]
  return port ?? (headers['x-forwarded-proto'] === 'https' ? '443' : '80')
}

/** The fields of a reply for the client; those that hold one of the credentials in `withheld` stay behind. */
export function toClientFields({ fields }: ReplyHead, withheld: readonly string[]): string[] {
  const own = endToEndFields(fields)
  return withheld.length === 0
    ? own
    : fieldsOf(own, (name, value) => !holdsCredential(`${name}: ${value}`, withheld))
}

/** The fields of a list of names and values that pass; names are compared in lower case. */
function fieldsOf(raw: readonly string[], passes: (name: string, value: string) => boolean): string[] {
  const fields: string[] = []
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const [name = '', value = ''] = [raw[at], raw[at + 1]]
    if (passes(name.toLowerCase(), value)) fields.push(name, value)
  }
  return fields
}
