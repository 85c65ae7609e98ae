import type { CheckKind, ComparedExchange } from '../../compare/compared-exchange.ts'
import type { CheckEnd, OfferedExchange, PaceRefusal, WireReply } from '../../compare/live/index.ts'
import type { PackedConfig } from '../../config/index.ts'
import type { ComparedSeen } from '../../observability/metrics.ts'
import { type Events, framesOf } from '../../observability/events.ts'
import type { Client, Partner } from '../../partners/partner.ts'
import type { EvidenceEntry, EvidenceScope, PeriodKey, Side } from '../../rollout/index.ts'
import type { V3Credentials } from '../../v3/index.ts'

// What the thread of comparisons and the main thread call each other for. All of it is plain values.

/** A client with the id of its partner. */
export type PostedClient = Omit<Client, 'partner'> & { readonly partner: string }

/** An exchange as the other thread gets it: what was posted as a buffer arrives as plain bytes. */
export type PostedExchange = WithClient<OfferedExchange>
type WithClient<One> = One extends unknown ? Omit<One, 'client'> & { readonly client: PostedClient } : never

/** What the thread is started with. */
export interface ThreadStart {
  readonly config: PackedConfig
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
  readonly use: (config: PackedConfig) => void
  /** Resolves once all checks have ended. */
  readonly close: () => Promise<void>
}

/** What V3 is asked with for a client. */
interface PostedAuthorisation {
  readonly credentials: V3Credentials
  readonly canRenew: boolean
}

/** What the main thread answers: it has the tokens, the rate of calls and the journal, and counts and logs. */
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
  /** The comparison of an exchange has begun: there is room for another. */
  readonly begun: (id: number) => void
  readonly ended: (id: number, check: CheckKind, end: PostedEnd) => void
  /** Counts of an exchange that V2 served. */
  readonly learned: (scope: EvidenceScope, names: readonly string[]) => void
  /** A side was asked; `status` is undefined where it did not answer. */
  readonly called: (partner: string, side: Side, status: number | undefined) => void
  readonly compared: (exchange: ComparedExchange) => void
  readonly internalError: (event: Parameters<Events['internalError']>[0]) => void
  readonly unmarkedCodesUnknown: (event: Parameters<Events['unmarkedCodesUnknown']>[0]) => void
}

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

const toReply = (reply: WireReply): WireReply => ({ ...reply, body: toBuffer(reply.body) })

function toBuffer(bytes: Uint8Array | undefined): Buffer | undefined {
  return bytes && Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

/** An error of a comparison as the log has it: without its message, which may quote a value. */
export function toInternalError(cause: unknown): Parameters<Events['internalError']>[0] {
  return cause instanceof Error
    ? { errorName: cause.name, stack: framesOf(cause) }
    : { errorName: 'comparison thread ended', stack: [] }
}
