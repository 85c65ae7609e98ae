import { randomBytes } from 'node:crypto'

/** The permissions of a bearer token. */
export interface TokenGrant {
  /** Security domains (service.md 1.1); undefined: all of them. */
  readonly domains: ReadonlySet<string> | undefined
  /** Milliseconds of the service's clock; undefined: never expires. */
  readonly expiresAt: number | undefined
}

/** The tokens that a gateway accepts. */
export interface Tokens {
  /** The grant of a token that is known and has not expired. */
  find(token: string): TokenGrant | undefined
}

/** The tokens of the token endpoint. */
export interface IssuedTokens extends Tokens {
  /** Issues a new token, good for `lifetimeSeconds`. */
  issue(domains: ReadonlySet<string> | undefined): string
}

/** One hour (service-facts 11). */
export const lifetimeSeconds = 3600

/** The declared tokens, which never expire, and the issued ones. */
export function createTokens(
  declared: ReadonlyMap<string, ReadonlySet<string> | undefined>,
  issued: Tokens,
): Tokens {
  return {
    find: (token) =>
      declared.has(token) ? { domains: declared.get(token), expiresAt: undefined } : issued.find(token),
  }
}

/** Creates the register of the token endpoint. */
export function createIssuedTokens(now: () => number): IssuedTokens {
  // In order of issue, so the first to expire comes first, unless the clock was set back.
  const issued = new Map<string, { domains: TokenGrant['domains']; expiresAt: number }>()
  const dropExpired = (): void => {
    for (const [token, { expiresAt }] of issued) {
      if (expiresAt > now()) return
      issued.delete(token)
    }
  }
  return {
    find: (token) => {
      const grant = issued.get(token)
      return grant !== undefined && grant.expiresAt > now() ? grant : undefined
    },
    issue: (domains) => {
      dropExpired()
      const token = randomBytes(24).toString('base64url')
      issued.set(token, { domains, expiresAt: now() + lifetimeSeconds * 1000 })
      return token
    },
  }
}
