import { gatewayError } from './reply.ts'
import type { Reply } from './reply.ts'

/** Who calls, once both headers were accepted. */
export interface Principal {
  /** Security domains of the token (service.md 1.1); undefined: all of them. */
  readonly domains?: ReadonlySet<string>
  /** Recorded as the author of this caller's marks; lower case. */
  readonly actorId: string
}

/** A caller, or the gateway's refusal. */
export type Admission = { readonly principal: Principal } | { readonly refusal: Reply }

/** The subscription key and bearer token that are always accepted and hold every security domain. */
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

/** What the gateway knows about keys and tokens. */
export interface Gateway {
  admit(credentials: Credentials): Admission
}

/** Creates the gateway; `keys` and `tokens` are those accepted besides the sandbox's own. */
export function createGateway(
  actorId: string,
  keys: ReadonlySet<string>,
  tokenDomains: (token: string) => ReadonlySet<string> | undefined,
): Gateway {
  const everything: Principal = { actorId }
  return {
    admit: ({ subscriptionKey, authorization }) => {
      if (subscriptionKey === undefined || subscriptionKey === '')
        return { refusal: gatewayError(401, missingKey) }
      if (subscriptionKey !== sandboxCredential && !keys.has(subscriptionKey))
        return { refusal: gatewayError(401, invalidKey) }
      // The scheme is compared without case (RFC 9110 11.1); service.md 4.2 writes it in lower case.
      const token = /^bearer +(\S+) *$/i.exec(authorization ?? '')?.[1]
      if (token === sandboxCredential) return { principal: everything }
      const domains = token === undefined ? undefined : tokenDomains(token)
      if (domains === undefined) return { refusal: gatewayError(401, invalidToken) }
      return { principal: { actorId, domains } }
    },
  }
}
