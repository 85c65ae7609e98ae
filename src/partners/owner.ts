import { hash } from 'node:crypto'

import { decodeJwt } from 'jose'

import type { V3Credentials } from '../v3/index.ts'

/** The settings of a partner that decide the owners of its requests. */
export interface OwnerRules {
  readonly id: string
  readonly match: object
  /** Claims of the bearer token, where it is a JWT, that separate one owner from another. */
  readonly identityClaims: readonly string[]
  /** What names the school of a request: here the claim of its token. */
  readonly unit: { readonly claim: string }
  /** The adapter's own tokens for this partner; undefined: the client's bearer token is passed on. */
  readonly tokens: unknown
}

/** A client as its credentials show it. Nothing in it was verified: it separates clients and admits none. */
export interface ClientIdentity {
  /** Base64url of SHA-256: the owner of batches, stored answers and open records (product contract 3). */
  readonly owner: string
  /** Base64url of SHA-256 over the subscription key and the token. */
  readonly credentialsHash: string
  /** False where the token does not name its client: credentials of this owner may then belong to different clients. */
  readonly isNamed: boolean
  /** The school that the token names, as text; undefined: it names none. */
  readonly school: string | undefined
  /** The `exp` of the token, ms since the epoch; undefined where it shows none. */
  readonly expiresMs: number | undefined
}

/** A longer token is taken for an opaque one. */
const MAX_TOKEN_LENGTH = 65_536

/** Identifies the client of a partner by the credentials that it sent. */
export function identify(
  { id, match, identityClaims, tokens, unit }: OwnerRules,
  { authorization, subscriptionKey }: V3Credentials,
): ClientIdentity {
  const credentialsHash = digest(`${subscriptionKey}\n${authorization}`)
  const payload = decodeToken(authorization)
  const named = toClaim(payload?.[unit.claim])
  const school = named === null ? undefined : [named].flat().join(' ')
  // With tokens of the adapter's own the partner is the only client that V3 knows.
  if (tokens !== undefined)
    return { owner: ownerOf([id]), credentialsHash, isNamed: true, school, expiresMs: undefined }
  const keyPart = isKeyed(match) ? '' : digest(subscriptionKey)
  const claims = identityClaims.map((name) => toClaim(payload?.[name]))
  const exp = payload?.['exp']
  return {
    owner: ownerOf([id, keyPart, claims]),
    credentialsHash,
    isNamed: claims.some((claim) => claim !== null),
    school,
    expiresMs: typeof exp === 'number' && Number.isFinite(exp) ? exp * 1_000 : undefined,
  }
}

/** The keys that a partner lists are of one client. */
const isKeyed = (match: object): boolean => 'subscriptionKeySha256' in match
const digest = (text: string): string => hash('sha256', text, 'base64url')
const ownerOf = (parts: readonly unknown[]): string => digest(JSON.stringify(parts))

/** The claims of a JWT; undefined for an opaque or broken token. */
function decodeToken(authorization: string): Readonly<Record<string, unknown>> | undefined {
  const token = authorization.replace(/^bearer +/i, '').trimEnd()
  // An error for each request with an opaque token would cost more than all else that is done for it here.
  if (token.length > MAX_TOKEN_LENGTH || token.split('.').length !== 3) return undefined
  try {
    return decodeJwt(token)
  } catch {
    // Whatever is wrong with it: V3 judges tokens, and this one names no client.
    return undefined
  }
}

type Scalar = string | number | boolean
const isScalar = (value: unknown): value is Scalar =>
  typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'

/** A claim as it separates owners. The order of a list may differ from token to token; nested values identify no owner. */
function toClaim(value: unknown): Scalar | readonly string[] | null {
  if (isScalar(value)) return value
  if (!Array.isArray(value) || value.length === 0 || !value.every(isScalar)) return null
  return value.map((one) => JSON.stringify(one)).sort()
}
