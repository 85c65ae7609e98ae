import { randomBytes } from 'node:crypto'

/** What a bearer token lets its holder do. */
export interface TokenGrant {
  /** Security domains (service.md 1.1); undefined: all of them. */
  readonly domains: ReadonlySet<string> | undefined
  /** Milliseconds of the service's clock; undefined: never expires. */
  readonly expiresAt: number | undefined
}

/** The tokens that are good. */
export interface Tokens {
  /** The grant of a token that is known and has not expired. */
  find(token: string): TokenGrant | undefined
  /** Issues a new token, good for `lifetimeSeconds`. */
  issue(domains: ReadonlySet<string> | undefined): string
}

/** One hour (service-facts 11). */
export const lifetimeSeconds = 3600

/** Creates the register of tokens; `declared` never expire. */
export function createTokens(
  declared: ReadonlyMap<string, ReadonlySet<string> | undefined>,
  now: () => number,
): Tokens {
  const grants = new Map<string, TokenGrant>()
  for (const [token, domains] of declared) grants.set(token, { domains, expiresAt: undefined })
  return {
    find: (token) => {
      const grant = grants.get(token)
      if (grant?.expiresAt === undefined || grant.expiresAt > now()) return grant
      grants.delete(token)
      return undefined
    },
    issue: (domains) => {
      const token = randomBytes(24).toString('base64url')
      grants.set(token, { domains, expiresAt: now() + lifetimeSeconds * 1000 })
      return token
    },
  }
}
