import type { IncomingMessage } from 'node:http'

import { AdapterError } from '../errors.ts'
import { readClientCredentials, showClientCredentials } from '../http/client-credentials.ts'
import type { StageSetting } from '../rollout/stage.ts'
import type { ReadRules, RecordMapping } from '../translate/index.ts'
import type { RateLimit, RateLimits, TokenSource } from '../upstream/index.ts'
import type { BatchChoice, BodyProfile, V3Credentials } from '../v3/index.ts'
import { type ClientIdentity, identify } from './owner.ts'

export type PartnerMatch =
  | { readonly any: true }
  /** Hexadecimal. All keys of the list belong to one client, which moves from one key to the next. */
  | { readonly subscriptionKeySha256: readonly string[] }
  | { readonly header: { readonly name: string; readonly value: string } }
  | { readonly pathPrefix: string }

export interface Partner {
  readonly id: string
  readonly match: PartnerMatch
  readonly fileStage: StageSetting
  /** What the guards do at `canary` once V3 performs worse than V2. */
  readonly guard: 'back' | 'warn'
  /** The source of the school of a request, the unit of `canary`: a claim of its token, or else a header, in lower case. */
  readonly unit: { readonly claim: string; readonly header: string | undefined }
  /** The base address of V2, or `undefined` if there is none and V3 serves all requests. */
  readonly v2: URL | undefined
  /** Claims of the bearer token, if it is a JWT, that separate one owner from another. */
  readonly identityClaims: readonly string[]
  readonly layout: 'flat' | 'nested' | 'auto'
  /** Host names, in lower case, that absolute URLs in a batch may have, or `undefined` for any host (batch-wire F21). */
  readonly serviceHosts: readonly string[] | undefined
  /** True if a record or page in an answer is wrapped in the `d` of OData V2. */
  readonly dataEnvelope: boolean
  /** True if parts of a batch reply are `application/http; msgtype=response`. */
  readonly msgtypeResponse: boolean
  /** Texts that replace the adapter's for V2's errors, by error code. `undefined` if there are none. */
  readonly errorMessages: Readonly<Record<string, string>> | undefined
  /** How records are treated if the ids in the header and body differ (batch-wire 3). */
  readonly mismatch: 'post' | 'drop'
  readonly mapping: RecordMapping
  readonly reads: ReadRules
  /** The entries of the configured `reads.unmarkedCodes` that are letters. Each school has its own ids for these letters. */
  readonly unmarkedLetters: readonly string[]
  readonly bodyProfile: BodyProfile
  /** Maximum number of records of one batch in progress at the same time. */
  readonly concurrency: number
  /** How records are sent to V3 in batches, or `undefined` to send them one by one. */
  readonly batch: BatchChoice | undefined
  /** Time in milliseconds for all records of one batch. */
  readonly budgetMs: number
  /** Pauses in milliseconds before each read-back of a record with an unknown outcome. Empty if records are not read back. */
  readonly readBackAfterMs: readonly number[]
  /** Longest time in milliseconds that V3 takes for one record of a `$batch`. */
  readonly batchRecordMs: number
  /** Maximum number of calls to V3 per second with the partner's key, or `undefined` for no limit. */
  readonly callsPerSecond: number | undefined
  /** The partner's key on the V3 gateway, if it differs from its V2 key (service-facts 10). */
  readonly subscriptionKey: (() => string) | undefined
  /** How exchanges at `shadow` are compared: the percentage, and how long V3 may take to show what V2 accepted. */
  readonly compare: { readonly percent: number; readonly settleMs: number }
  /** The percentage of requests served by V3 that are checked on V2. */
  readonly checkV2Percent: number
  /** The adapter's own tokens for this partner, or `undefined` if the client's bearer token is forwarded. */
  readonly tokens: TokenSource | undefined
}

/**
 * Returns the milliseconds, after its loss or the last sign of its `$batch`, within which a write may still arrive. `records` counts the
 * missing records of the `$batch`, or is 0 for a record that was posted alone.
 */
export function arrivalMs(
  { readBackAfterMs, batchRecordMs }: Pick<Partner, 'readBackAfterMs' | 'batchRecordMs'>,
  records: number,
): number {
  return readBackAfterMs.reduce((sum, ms) => sum + ms, 0) + records * batchRecordMs
}

/** A client as its request describes it. Nothing was verified. */
export interface Client {
  readonly partner: Partner
  /** The client's own credentials, which can finish its writes later. Empty strings if it sent none. */
  readonly client: V3Credentials
  readonly owner: string
  readonly identity: ClientIdentity
}

export interface Authorisation extends Client {
  readonly credentials: V3Credentials
  readonly rateLimit: RateLimit | undefined
  /** Returns credentials with a new token after the service rejected the current one. `undefined` if the token is the client's own. */
  readonly renew: (() => Promise<V3Credentials>) | undefined
}

/** Recognises the client by its outer credentials alone (batch-wire F24). Throws `ADP_SUBSCRIPTION_KEY` or `ADP_TOKEN` without a match. */
export function createRecogniseClient(
  find: (request: IncomingMessage, subscriptionKey: string) => Partner | undefined,
): (request: IncomingMessage) => Client {
  return (request) => {
    const client = showClientCredentials(request.headers)
    const partner = find(request, client.subscriptionKey)
    if (partner === undefined) {
      readClientCredentials(request.headers)
      throw new AdapterError(
        'ADP_SUBSCRIPTION_KEY',
        'Access denied due to invalid subscription key. Make sure to provide a valid key for an active subscription.',
      )
    }
    const identity = identify(partner, client)
    return { partner, client, owner: identity.owner, identity }
  }
}

/** Throws `ADP_SUBSCRIPTION_KEY` or `ADP_TOKEN` for missing credentials, and the errors of `authoriseClient`. V3 verifies the token. */
export function createAuthorise(
  rateLimits: RateLimits,
): (request: IncomingMessage, client: Client) => Promise<Authorisation> {
  return (request, client) => {
    readClientCredentials(request.headers)
    return authoriseClient(client, rateLimits)
  }
}

/**
 * Returns the credentials and rate limit for a client's calls to V3. With tokens of the adapter's own for the partner, the client's token
 * is not forwarded, and the function rejects with the error of the token endpoint if it gets no token.
 */
export async function authoriseClient(known: Client, rateLimits: RateLimits): Promise<Authorisation> {
  const { partner, client } = known
  const { callsPerSecond, tokens, match } = partner
  const { authorization } = client
  const subscriptionKey = partner.subscriptionKey?.() ?? client.subscriptionKey
  const isConfigured = partner.subscriptionKey !== undefined || 'subscriptionKeySha256' in match
  const rateLimit =
    callsPerSecond === undefined ? undefined : rateLimits.of(subscriptionKey, callsPerSecond, isConfigured)
  const who = { ...known, rateLimit }
  if (tokens === undefined)
    return { ...who, credentials: { authorization, subscriptionKey }, renew: undefined }
  const token = await tokens.token()
  const withToken = (own: string): V3Credentials => ({ authorization: `Bearer ${own}`, subscriptionKey })
  const renew = async (): Promise<V3Credentials> => withToken(await tokens.renew(token))
  return { ...who, credentials: withToken(token), renew }
}

/** Authorises work without a client, by credentials `shown` earlier or the partner's own. Returns `credentials` if both are missing. */
export function authoriseWithout(
  partner: Partner,
  rateLimits: RateLimits,
  shown: V3Credentials | undefined,
): Promise<Authorisation> | 'credentials' {
  const isComplete = partner.tokens !== undefined && partner.subscriptionKey !== undefined
  if (shown === undefined && !isComplete) return 'credentials'
  const client = shown ?? { authorization: '', subscriptionKey: '' }
  const identity = identify(partner, client)
  return authoriseClient({ partner, client, owner: identity.owner, identity }, rateLimits)
}

/** Returns the school of the token, or else of the header (which moves only the client's own requests), or else the owner. */
export function unitOf({ partner, identity, owner }: Client, { headers }: IncomingMessage): string {
  if (identity.school !== undefined) return identity.school
  const { header } = partner.unit
  const named = header === undefined ? undefined : headers[header]
  return typeof named === 'string' && named !== '' ? named : owner
}
