import type { CheckKind, ComparedExchange } from '../../compare/compared-exchange.ts'
import type { PartnerRule } from '../../compare/diff/index.ts'
import type { CheckEnd, OfferedExchange, OfferedReply, PaceRefusal } from '../../compare/live/index.ts'
import type { Config } from '../../config/index.ts'
import type { ComparedSeen } from '../../observability/compare-metrics.ts'
import { type Events, framesOf } from '../../observability/events.ts'
import type { Client, Partner } from '../../partners/partner.ts'
import type { EvidenceEntry, EvidenceScope, PeriodKey, Side } from '../../rollout/index.ts'
import type { UpstreamTimeouts } from '../../upstream/index.ts'
import type { BatchLimits } from '../../v2/index.ts'
import type { V3Credentials } from '../../v3/index.ts'

// What the thread of comparisons and the main thread call each other for. All of it is plain values.

/** A partner without what calls services: its keys and tokens are asked for. */
type PostedPartner = Omit<Partner, 'v2' | 'tokens' | 'subscriptionKey'> & {
  readonly v2: string | undefined
  readonly tokens: undefined
  readonly subscriptionKey: undefined
  readonly rules: readonly PartnerRule[]
}

/** A client with the id of its partner. */
export type PostedClient = Omit<Client, 'partner'> & { readonly partner: string }

/** An exchange as the other thread gets it: what was posted as a buffer arrives as plain bytes. */
export type PostedExchange = WithClient<OfferedExchange>
type WithClient<One> = One extends unknown ? Omit<One, 'client'> & { readonly client: PostedClient } : never

/** What follows the configuration. */
export interface ThreadSettings {
  readonly limits: BatchLimits
  readonly partners: readonly PostedPartner[]
}

/** Settings that the thread is started with. */
export interface ThreadStart extends ThreadSettings {
  /** The base address of V3. */
  readonly baseUrl: string
  readonly timeouts: UpstreamTimeouts & { readonly acquireMs: number }
  /** What the date of the adapter is ahead of the machine's, ms. */
  readonly aheadMs: number
  /** False: no journal is configured, so nothing is kept. */
  readonly hasStore: boolean
  /** True: whole comparisons are posted too. */
  readonly isObserved: boolean
  /** The nice value of the thread. */
  readonly nice: number
}

/** What the thread answers. */
export interface ThreadCalls {
  /**
   * Compares an exchange, and resolves once nothing of it is under way. `sinceMicros`: when its client had the reply, by `nowMicros`. Checks that
   * have not ended then have failed.
   */
  readonly compare: (id: number, sinceMicros: number, exchange: PostedExchange) => Promise<void>
  /** Notes the keys of a write that is not compared. */
  readonly wrote: (partner: string, keys: readonly (string | undefined)[]) => void
  /** Another configuration is in use. */
  readonly use: (settings: ThreadSettings) => void
  /** Resolves once all checks have ended. */
  readonly close: () => Promise<void>
}

/** What V3 is asked with for a client. */
interface PostedAuthorisation {
  readonly credentials: V3Credentials
  readonly canRenew: boolean
}

/** What the main thread answers: it has the tokens, the rate of calls and the journal. */
export interface MainCalls {
  readonly authorise: (client: PostedClient) => Promise<PostedAuthorisation>
  /** Credentials in place of these, which V3 has refused. */
  readonly renew: (client: PostedClient, refused: V3Credentials) => Promise<V3Credentials>
  /** V3 has accepted the credentials of the client. */
  readonly accepted: (client: PostedClient) => void
  /** As `Pace.acquire`. */
  readonly acquire: (client: PostedClient, side: Side, timeMs: number) => Promise<PaceRefusal | undefined>
  /** A side has answered 429. */
  readonly throttled: (partner: string, side: Side) => void
  readonly evidenceKey: (scope: EvidenceScope) => Promise<PeriodKey>
  readonly note: (note: Note) => void
}

/** What the main thread counts, keeps and logs. */
export type Note =
  /** The comparison of an exchange has begun: there is room for another. */
  | { readonly kind: 'begun'; readonly id: number }
  | { readonly kind: 'ended'; readonly id: number; readonly check: CheckKind; readonly end: PostedEnd }
  /** Counts of an exchange that V2 served. */
  | { readonly kind: 'learned'; readonly scope: EvidenceScope; readonly names: readonly string[] }
  | {
      readonly kind: 'called'
      readonly partner: string
      readonly side: Side
      readonly status: number | undefined
    }
  | { readonly kind: 'compared'; readonly exchange: ComparedExchange }
  | { readonly kind: 'internalError'; readonly event: Parameters<Events['internalError']>[0] }
  | { readonly kind: 'unmarkedCodesUnknown'; readonly event: Parameters<Events['unmarkedCodesUnknown']>[0] }

/** The end of a check, as it is counted and kept. */
export type PostedEnd =
  | {
      readonly kind: 'compared'
      readonly seen: ComparedSeen
      /** Undefined: nothing can be kept. */
      readonly evidence: { readonly period: number; readonly entry: EvidenceEntry } | undefined
    }
  | Exclude<CheckEnd, { readonly kind: 'compared' }>

/** Microseconds of a clock that all threads share. */
export const nowMicros = (): number => Number(process.hrtime.bigint() / 1_000n)

/** Partners of a configuration as plain values, with the rules of their own. */
export function toPostedPartners(
  partners: readonly Partner[],
  config: Pick<Config, 'partners'>,
): readonly PostedPartner[] {
  const rules = new Map(config.partners.map(({ id, compare }) => [id, compare.rules]))
  return partners.map(({ v2, ...own }) => ({
    ...own,
    ...{ v2: v2?.href, rules: rules.get(own.id) ?? [], tokens: undefined, subscriptionKey: undefined },
  }))
}

/** A partner in the thread: its keys and tokens are asked for. */
export function fromPostedPartner({ v2, ...own }: PostedPartner): Partner {
  return { ...own, v2: v2 === undefined ? undefined : new URL(v2) }
}

export const toPostedClient = ({ partner, client, owner, identity }: Client): PostedClient => ({
  partner: partner.id,
  client: { authorization: client.authorization, subscriptionKey: client.subscriptionKey },
  owner,
  identity,
})

/** The exchange as the thread compares it. */
export function fromPostedExchange(exchange: PostedExchange, partner: Partner): OfferedExchange {
  const client: Client = { ...exchange.client, partner }
  if ('records' in exchange) return { ...exchange, client }
  if ('request' in exchange)
    return { ...exchange, client, body: toBuffer(exchange.body), reply: toReply(exchange.reply) }
  return { ...exchange, client, reply: exchange.reply && toReply(exchange.reply) }
}

const toReply = (reply: OfferedReply): OfferedReply => ({ ...reply, body: toBuffer(reply.body) })

function toBuffer(bytes: Uint8Array | undefined): Buffer | undefined {
  return bytes && Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

/** An error of a comparison as the log has it: without its message, which may quote a value. */
export function toInternalError(cause: unknown): Parameters<Events['internalError']>[0] {
  return cause instanceof Error
    ? { errorName: cause.name, stack: framesOf(cause) }
    : { errorName: 'comparison thread ended', stack: [] }
}
