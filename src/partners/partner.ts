import type { IncomingMessage } from 'node:http'

import { AdapterError } from '../errors.ts'
import type { ReadRules, RecordMapping } from '../translate/index.ts'
import type { RateLimit, RateLimits, TokenSource } from '../upstream/index.ts'
import type { BatchChoice, BodyProfile, V3Credentials } from '../v3/index.ts'
import type { ClientIdentity, Identify } from './owner.ts'
import { readClientCredentials } from '../http/client-credentials.ts'

/** How a request is known to be a partner's. */
export type PartnerMatch =
  | { readonly any: true }
  /** Hexadecimal; the keys of one list belong to one client, which changes from one to the next. */
  | { readonly subscriptionKeySha256: readonly string[] }
  | { readonly header: { readonly name: string; readonly value: string } }
  | { readonly pathPrefix: string }

/** A partner as the proxy needs it. */
export interface Partner {
  readonly id: string
  readonly match: PartnerMatch
  /** Claims of the bearer token, where it is a JWT, that separate one owner from another. */
  readonly identityClaims: readonly string[]
  readonly layout: 'flat' | 'nested' | 'auto'
  /** Host names, in lower case, that absolute URLs inside a batch may have; undefined: any (batch-wire F21). */
  readonly serviceHosts: readonly string[] | undefined
  /** Answers with a record or a page are in the `d` of OData V2. */
  readonly dataEnvelope: boolean
  /** Parts of a batch reply are `application/http; msgtype=response`. */
  readonly msgtypeResponse: boolean
  /** The treatment of records whose ids of header and body differ (batch-wire 3). */
  readonly mismatch: 'post' | 'drop'
  readonly mapping: RecordMapping
  readonly reads: ReadRules
  /** Codes besides `reads.unmarkedCodes` that mean "no mark", by their letters: each school has ids of its own. */
  readonly unmarkedLetters: readonly string[]
  readonly bodyProfile: BodyProfile
  /** Records of one batch that are under way at the same time. */
  readonly concurrency: number
  /** How records go to V3 in batches; undefined: one by one. */
  readonly batch: BatchChoice | undefined
  /** Time for all records of one batch. */
  readonly budgetMs: number
  /** Pauses before each read-back of a record whose outcome is unknown, ms; empty: it is not read back. */
  readonly readBackAfterMs: readonly number[]
  /** Calls to V3 with the partner's key in a second; undefined: as many as come. */
  readonly callsPerSecond: number | undefined
  /** Refuse a batch at once that cannot be finished within the budget at this rate, rather than to begin it. */
  readonly refuseOverBudget: boolean
  /** The partner's key on the V3 gateway, where it differs from its V2 key (service-facts 10). */
  readonly subscriptionKey: (() => string) | undefined
  /** The adapter's own tokens for this partner; undefined: the client's bearer token is passed on. */
  readonly tokens: TokenSource | undefined
}

/** Finds the first partner that matches a request; undefined where none does. */
export type FindPartner = (request: IncomingMessage, subscriptionKey: string) => Partner | undefined

/** The client of a request, and the credentials for V3. */
export interface Authorisation {
  readonly partner: Partner
  readonly credentials: V3Credentials
  /** The client's own credentials: they finish its writes without it. */
  readonly client: V3Credentials
  /** The owner of this client's batches and their answers. */
  readonly owner: string
  readonly identity: ClientIdentity
  /** The pace of the partner's calls; undefined where nothing limits them. */
  readonly rateLimit: RateLimit | undefined
  /** Credentials with a new token, after the service refused the one above; undefined: the token is the client's. */
  readonly renew: (() => Promise<V3Credentials>) | undefined
}

/**
 * Finds the partner of a request and its credentials: those of the outer request alone (batch-wire F24).
 * Errors: `ADP_SUBSCRIPTION_KEY` without a key or for an unknown one, `ADP_TOKEN` without a bearer token; the service
 * judges the token itself. And those of `authorisePartner`.
 */
export function createAuthorise(
  find: FindPartner,
  rateLimits: RateLimits,
  identify: Identify,
): (request: IncomingMessage) => Promise<Authorisation> {
  return async (request) => {
    const client = readClientCredentials(request.headers)
    const partner = find(request, client.subscriptionKey)
    if (partner === undefined) {
      throw new AdapterError(
        'ADP_SUBSCRIPTION_KEY',
        'Access denied due to invalid subscription key. Make sure to provide a valid key for an active subscription.',
      )
    }
    return authorisePartner(partner, rateLimits, identify, client)
  }
}

/**
 * What a partner's upstream is asked with, given the credentials of its client. With tokens of the adapter's own the client's
 * is not sent on; no token to be had rejects with the error of the token endpoint.
 */
async function authorisePartner(
  partner: Partner,
  rateLimits: RateLimits,
  identify: Identify,
  client: V3Credentials,
): Promise<Authorisation> {
  const { callsPerSecond, tokens } = partner
  const { authorization } = client
  const subscriptionKey = partner.subscriptionKey?.() ?? client.subscriptionKey
  const rateLimit = callsPerSecond === undefined ? undefined : rateLimits.of(subscriptionKey, callsPerSecond)
  const identity = identify(partner, client)
  const who = { partner, client, owner: identity.owner, identity, rateLimit }
  if (tokens === undefined)
    return { ...who, credentials: { authorization, subscriptionKey }, renew: undefined }
  const token = await tokens.token()
  const withToken = (own: string): V3Credentials => ({ authorization: `Bearer ${own}`, subscriptionKey })
  const renew = async (): Promise<V3Credentials> => withToken(await tokens.renew(token))
  return { ...who, credentials: withToken(token), renew }
}

/**
 * As `authorisePartner`, without a client that asks: `shown` is what one showed before. A partner with a token source and a key
 * of its own needs none; any other gives `credentials`.
 */
export function authoriseWithout(
  partner: Partner,
  rateLimits: RateLimits,
  identify: Identify,
  shown: V3Credentials | undefined,
): Promise<Authorisation> | 'credentials' {
  const isComplete = partner.tokens !== undefined && partner.subscriptionKey !== undefined
  if (shown === undefined && !isComplete) return 'credentials'
  return authorisePartner(partner, rateLimits, identify, shown ?? { authorization: '', subscriptionKey: '' })
}
