import type { Reply } from '../edge/reply.ts'
import { lifetimeSeconds } from './tokens.ts'
import type { IssuedTokens } from './tokens.ts'

/** A client of the token endpoint: one per school and application (service-facts 11). */
export interface TokenClient {
  readonly id: string
  readonly secret: string
  /** The organisation it may select; undefined: any. */
  readonly organisation: string | undefined
  /** Security domains of its tokens; undefined: all of them. */
  readonly domains: ReadonlySet<string> | undefined
}

const reply = (status: number, body: Readonly<Record<string, unknown>>): Reply => ({
  status,
  headers: { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' },
  body: JSON.stringify(body),
})
const refuse = (status: number, error: string): Reply => reply(status, { error })

/**
 * The stand-in token endpoint (service-facts 11; RFC 6749 4.4 and 5): `client_credentials`, form-encoded, with `scope` and the
 * organisation in `acr_values`. Answers a token that is good for an hour, or an error of RFC 6749 5.2.
 */
export function createTokenEndpoint(
  clients: readonly TokenClient[],
  tokens: IssuedTokens,
): (contentType: string | undefined, body: string) => Reply {
  return (contentType, body) => {
    if (!/^application\/x-www-form-urlencoded\b/i.test(contentType ?? ''))
      return refuse(400, 'invalid_request')
    const form = new URLSearchParams(body)
    if (form.get('grant_type') === null) return refuse(400, 'invalid_request')
    if (form.get('grant_type') !== 'client_credentials') return refuse(400, 'unsupported_grant_type')
    const client = clients.find(
      ({ id, secret }) => id === form.get('client_id') && secret === form.get('client_secret'),
    )
    if (client === undefined) return refuse(401, 'invalid_client')
    const scope = form.get('scope')
    if (scope === null || scope === '') return refuse(400, 'invalid_scope')
    const organisation = /(?:^| )orgselected:(\S+)/.exec(form.get('acr_values') ?? '')?.[1]
    if (organisation === undefined) return refuse(400, 'invalid_request')
    // A school may withdraw its consent: the client is valid, the organisation is not, or no longer, its own.
    if (client.organisation !== undefined && client.organisation !== organisation)
      return refuse(400, 'unauthorized_client')
    const token = tokens.issue(client.domains)
    return reply(200, { access_token: token, expires_in: lifetimeSeconds, token_type: 'Bearer', scope })
  }
}
