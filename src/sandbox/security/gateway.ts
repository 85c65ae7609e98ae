import { gatewayError } from '../edge/reply.ts'
import type { Reply } from '../edge/reply.ts'
import type { Tokens } from './tokens.ts'

/** Who calls, once both headers were accepted. */
export interface Principal {
  /** Security domains of the token (service.md 1.1); undefined: all of them. */
  readonly domains: ReadonlySet<string> | undefined
  /** Recorded as the author of this caller's marks; lower case. */
  readonly actorId: string
}

/** A caller, or the gateway's refusal. */
export type Admission = { readonly principal: Principal } | { readonly refusal: Reply }

/** The subscription key, bearer token, client id and client secret that are always accepted and hold everything. */
export const sandboxCredential = 'sandbox'

const missingKey =
  'Access denied due to missing subscription key. Make sure to include subscription key when making requests to an API.'
const invalidKey =
  'Access denied due to invalid subscription key. Make sure to provide a valid key for an active subscription.'
const invalidToken = 'Unauthorized. Access token is missing or invalid.'

/** The two headers of every call (service.md 5, service-facts 10). */
export interface Credentials {
  readonly subscriptionKey: string | undefined
  readonly authorization: string | undefined
}

/** The checks that the gateway calls. */
export interface GatewayParts {
  /** Accepted subscription keys. */
  readonly keys: ReadonlySet<string>
  readonly tokens: Tokens
  /** Counts a call with a key; the seconds to wait where it is one too many. */
  readonly countCall: (subscriptionKey: string) => number | undefined
  readonly actorId: string
}

/** Creates the gateway in front of the service: key, rate, token, in this order (service-facts 9 to 12). */
export function createGateway(parts: GatewayParts): (credentials: Credentials) => Admission {
  const { keys, tokens, countCall, actorId } = parts
  return ({ subscriptionKey, authorization }) => {
    if (subscriptionKey === undefined || subscriptionKey === '')
      return { refusal: gatewayError(401, missingKey) }
    if (!keys.has(subscriptionKey)) return { refusal: gatewayError(401, invalidKey) }
    const waitSeconds = countCall(subscriptionKey)
    if (waitSeconds !== undefined) return { refusal: rateLimitReply(waitSeconds) }
    // The scheme is compared without case (RFC 9110 11.1); service.md 4.2 writes it in lower case.
    const token = /^bearer +(\S+) *$/i.exec(authorization ?? '')?.[1]
    const grant = token === undefined ? undefined : tokens.find(token)
    if (grant === undefined) return { refusal: gatewayError(401, invalidToken) }
    return { principal: { actorId, domains: grant.domains } }
  }
}

/** The gateway's refusal of a call too many (service-facts 9). */
export function rateLimitReply(retryAfterSeconds: number): Reply {
  const message = `Rate limit is exceeded. Try again in ${retryAfterSeconds} seconds.`
  return gatewayError(429, message, { 'Retry-After': String(retryAfterSeconds) })
}
