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
  /** The SHA-256 of each key, in hexadecimal. All keys belong to one client, which may change from one key to the next. */
  | { readonly subscriptionKeySha256: readonly string[] }
  | { readonly header: { readonly name: string; readonly value: string } }
  | { readonly pathPrefix: string }

export interface Partner {
  readonly id: string
  readonly match: PartnerMatch
  readonly fileStage: StageSetting
  /** The action of the guards at `canary` if V3 does worse than V2: take the partner back to `shadow`, or only warn. */
  readonly guard: 'back' | 'warn'
  /** The source of the school of a request, the unit of `canary`: a claim of the token, or otherwise a header (name in lower case). */
  readonly unit: { readonly claim: string; readonly header: string | undefined }
  /** The base address of V2, or `undefined` if there is no V2, so that V3 serves all requests. */
  readonly v2: URL | undefined
  /** The claims of the bearer token that distinguish one owner from another if the token is a JWT. */
  readonly identityClaims: readonly string[]
  readonly layout: 'flat' | 'nested' | 'auto'
  /** The host names that absolute URLs in a batch may have, in lower case, or `undefined` for any host (batch-wire F21). */
  readonly serviceHosts: readonly string[] | undefined
  /** True to wrap a record or page in a reply in the member `d` of OData V2. */
  readonly dataEnvelope: boolean
  /** True to send parts of a batch reply as `application/http; msgtype=response`. */
  readonly msgtypeResponse: boolean
  /** The texts that replace the adapter's texts for errors of V2, by error code, or `undefined` if no text is replaced. */
  readonly errorMessages: Readonly<Record<string, string>> | undefined
  /** The treatment of records if the ids in the header and the body differ (batch-wire 3): post them or drop them. */
  readonly mismatch: 'post' | 'drop'
  readonly mapping: RecordMapping
  readonly reads: ReadRules
  /** The entries of `reads.unmarkedCodes` that are letters and not ids. Each school has its own ids for these letters. */
  readonly unmarkedLetters: readonly string[]
  readonly bodyProfile: BodyProfile
  /** Maximum number of records of one batch that are in progress at the same time. */
  readonly concurrency: number
  /** The settings for sending records to V3 in batches, or `undefined` to send records one by one. */
  readonly batch: BatchChoice | undefined
  /** The time budget in milliseconds for all records of one batch. */
  readonly budgetMs: number
  /** The pauses in milliseconds before each read-back of a record with an unknown outcome. If empty, records are not read back. */
  readonly readBackAfterMs: readonly number[]
  /** The longest time in milliseconds that V3 takes for one record of a `$batch`. */
  readonly batchRecordMs: number
  /** Maximum number of calls to V3 per second with the partner's key, or `undefined` for no limit. */
  readonly callsPerSecond: number | undefined
  /** The partner's key on the V3 gateway, if it differs from its V2 key (service-facts 10). */
  readonly subscriptionKey: (() => string) | undefined
  /** The comparison at `shadow`: the percentage of exchanges, and the time in milliseconds that V3 may take to show what V2 accepted. */
  readonly compare: { readonly percent: number; readonly settleMs: number }
  /** The percentage of the requests served by V3 that are checked on V2. */
  readonly checkV2Percent: number
  /** The adapter's own tokens for this partner, or `undefined` if the client's bearer token is forwarded. */
  readonly tokens: TokenSource | undefined
}

/**
 * Returns the time in milliseconds during which a lost write may still be applied. The time begins with the loss, or with the last sign
 * that its `$batch` is still being executed. `records` is the number of missing records of the `$batch`, or 0 for a record that was posted
 * alone.
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
  /**
   * The client's own credentials, which can finish its writes later. The key and the token are empty strings if the client sent no
   * credentials.
   */
  readonly client: V3Credentials
  readonly owner: string
  readonly identity: ClientIdentity
}

export interface Authorisation extends Client {
  readonly credentials: V3Credentials
  readonly rateLimit: RateLimit | undefined
  /** Returns credentials with a new token after the service rejected the current token. `undefined` if the token is the client's own. */
  readonly renew: (() => Promise<V3Credentials>) | undefined
}

/** Creates a function that recognises a client by its own credentials (batch-wire F24), or throws `ADP_SUBSCRIPTION_KEY` or `ADP_TOKEN`. */
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

/** Creates a function that calls `authoriseClient`, or throws `ADP_SUBSCRIPTION_KEY` or `ADP_TOKEN` for missing credentials. */
export function createAuthorise(
  rateLimits: RateLimits,
): (request: IncomingMessage, client: Client) => Promise<Authorisation> {
  return (request, client) => {
    readClientCredentials(request.headers)
    return authoriseClient(client, rateLimits)
  }
}

/**
 * Returns the credentials and the rate limit for a client's calls to V3. If the adapter has its own tokens for the partner, the client's
 * token is not forwarded. The function then rejects with the error of the token endpoint if the endpoint issues no token.
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

/**
 * Authorises work without a client, by credentials that were `shown` earlier or by the partner's own. Returns `credentials` if there are
 * none.
 */
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

/** Returns the unit of a request: the school in the token, or otherwise in the header (which nobody verifies), or otherwise the owner. */
export function unitOf({ partner, identity, owner }: Client, { headers }: IncomingMessage): string {
  if (identity.school !== undefined) return identity.school
  const { header } = partner.unit
  const named = header === undefined ? undefined : headers[header]
  return typeof named === 'string' && named !== '' ? named : owner
}
