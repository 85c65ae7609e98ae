import type { IncomingMessage } from 'node:http'

import { AdapterError } from '../errors.ts'
import { readClientCredentials, showClientCredentials } from '../http/client-credentials.ts'
import type { StageSetting } from '../rollout/stage.ts'
import type { ReadRules, RecordMapping } from '../translate/index.ts'
import type { RateLimit, RateLimits, TokenSource } from '../upstream/index.ts'
import type { BatchChoice, BodyProfile, V3Credentials } from '../v3/index.ts'
import { type ClientIdentity, identify } from './owner.ts'

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
  readonly fileStage: StageSetting
  /** What guards do at `canary` once V3 does worse than V2. */
  readonly guard: 'back' | 'warn'
  /** What names the school of a request, as the unit of `canary`: a claim of its token, else a header, in lower case. */
  readonly unit: { readonly claim: string; readonly header: string | undefined }
  /** The base address of V2; undefined: there is none, so V3 serves all. */
  readonly v2: URL | undefined
  /** A batch that comes again while V2 serves is answered with V2's final reply, where that is kept; false: V2 is sent it each time. */
  readonly replaysV2: boolean
  /** Claims of the bearer token, where it is a JWT, that separate one owner from another. */
  readonly identityClaims: readonly string[]
  readonly layout: 'flat' | 'nested' | 'auto'
  /** Host names, in lower case, that absolute URLs inside a batch may have; undefined: any (batch-wire F21). */
  readonly serviceHosts: readonly string[] | undefined
  /** Answers with a record or a page are in the `d` of OData V2. */
  readonly dataEnvelope: boolean
  /** Parts of a batch reply are `application/http; msgtype=response`. */
  readonly msgtypeResponse: boolean
  /** Texts of V2's errors by their codes, in place of the adapter's; undefined: none. */
  readonly errorMessages: Readonly<Record<string, string>> | undefined
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
  /** The longest time that V3 takes for one record of a `$batch`, ms. */
  readonly batchRecordMs: number
  /** Calls to V3 with the partner's key in a second; undefined: as many as come. */
  readonly callsPerSecond: number | undefined
  /** The partner's key on the V3 gateway, where it differs from its V2 key (service-facts 10). */
  readonly subscriptionKey: (() => string) | undefined
  /** How its exchanges at `shadow` are compared: the share of them, and how long V3 may take to show what V2 accepted. */
  readonly compare: { readonly percent: number; readonly settleMs: number }
  /** The share of what V3 serves that is read back on V2, percent. */
  readonly checkV2Percent: number
  /** The adapter's own tokens for this partner; undefined: the client's bearer token is passed on. */
  readonly tokens: TokenSource | undefined
}

/**
 * The time after its loss, or after the last sign of its `$batch`, for which a write of the partner may still arrive, ms. `records`: how
 * many of the `$batch` are missing; 0: the record was posted by itself.
 */
export function arrivalMs(
  { readBackAfterMs, batchRecordMs }: Pick<Partner, 'readBackAfterMs' | 'batchRecordMs'>,
  records: number,
): number {
  return readBackAfterMs.reduce((sum, ms) => sum + ms, 0) + records * batchRecordMs
}

/** A client as its request shows it: nothing of it was verified. */
export interface Client {
  readonly partner: Partner
  /** The client's own credentials: they finish its writes without it. Empty where it showed none. */
  readonly client: V3Credentials
  /** The owner of this client's batches and their answers. */
  readonly owner: string
  readonly identity: ClientIdentity
}

/** A client with what V3 is asked with for it. */
export interface Authorisation extends Client {
  readonly credentials: V3Credentials
  /** The pace of the partner's calls; undefined where nothing limits them. */
  readonly rateLimit: RateLimit | undefined
  /** Credentials with a new token, after the service refused the one above; undefined: the token is the client's. */
  readonly renew: (() => Promise<V3Credentials>) | undefined
}

/**
 * Creates the recognition of clients: the partner of a request, and its owner, by the credentials of the outer request alone
 * (batch-wire F24). Error, where no partner matches: `ADP_SUBSCRIPTION_KEY` or `ADP_TOKEN`.
 */
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

/**
 * Creates the authorisation of requests that V3 serves. Errors: `ADP_SUBSCRIPTION_KEY` without a key, `ADP_TOKEN` without a bearer
 * token; the service judges the token itself. And those of `authoriseClient`.
 */
export function createAuthorise(
  rateLimits: RateLimits,
): (request: IncomingMessage, client: Client) => Promise<Authorisation> {
  return (request, client) => {
    readClientCredentials(request.headers)
    return authoriseClient(client, rateLimits)
  }
}

/**
 * What a partner's upstream is asked with, given the credentials of its client. With tokens of the adapter's own the client's
 * is not sent on; no token to be had rejects with the error of the token endpoint.
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
 * As `authoriseClient`, without a client that asks: `shown` is what one showed before. A partner with a token source and a key
 * of its own needs none; any other gives `credentials`.
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

/**
 * The unit that a request belongs to at `canary`: the school that its token names, else the one that a header names, else its owner. What
 * a client writes there moves its own requests only.
 */
export function unitOf({ partner, identity, owner }: Client, { headers }: IncomingMessage): string {
  if (identity.school !== undefined) return identity.school
  const { header } = partner.unit
  const named = header === undefined ? undefined : headers[header]
  return typeof named === 'string' && named !== '' ? named : owner
}
