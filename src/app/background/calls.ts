import type { CheckKind, ComparedExchange, OfferedExchange } from '../../compare/live/exchange.ts'
import type { CheckEnd } from '../../compare/live/live-comparison.ts'
import type { PaceRefusal } from '../../compare/live/pace.ts'
import type { PackedConfig } from '../../config/index.ts'
import { type Events, framesOf } from '../../observability/events.ts'
import type { ComparedSeen } from '../../observability/metrics.ts'
import type { Client } from '../../partners/partner.ts'
import type { PeriodKey } from '../../rollout/evidence/evidence-key.ts'
import type { EvidenceEntry } from '../../rollout/evidence/evidence-store.ts'
import type { EvidenceScope } from '../../rollout/evidence/read-kept.ts'
import type { Side } from '../../rollout/stage.ts'
import type { V3Credentials } from '../../v3/index.ts'

// What the thread of background work and the main thread call each other for. All of it is plain values; buffers arrive as plain bytes.

/** A client with the id of its partner. */
export type PostedClient = Omit<Client, 'partner'> & { readonly partner: string }

/** An exchange as the other thread gets it. */
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
   * Compares an exchange, and resolves once nothing of it is under way. `sinceMicros`: when its client had the reply, by `nowMicros`. Checks
   * without an end have failed.
   */
  readonly compare: (id: number, sinceMicros: number, exchange: PostedExchange) => Promise<PostedResult>
  /** Notes the keys of a write that is not compared. */
  readonly wrote: (partner: string, keys: readonly (string | undefined)[]) => void
  /** Another configuration is in use. */
  readonly use: (config: PackedConfig) => void
  /** Resolves once all that was begun has ended. */
  readonly close: () => Promise<void>
}

/** What became of an exchange that was to be compared. */
export interface PostedResult {
  readonly ends: readonly (readonly [CheckKind, PostedEnd])[]
  /** Counts of what V2's reply shows. */
  readonly learned: readonly string[]
}

/** The end of a check, as it is counted and kept. */
export type PostedEnd =
  | {
      readonly kind: 'compared'
      readonly seen: ComparedSeen
      /** Undefined: nothing can be kept. */
      readonly evidence: { readonly period: number; readonly entry: EvidenceEntry } | undefined
      /** Where it is observed. */
      readonly exchange: ComparedExchange | undefined
    }
  | Exclude<CheckEnd, { readonly kind: 'compared' }>

/** What the main thread answers: it has the tokens, the rate of calls and the journal, and counts and logs. */
export interface MainCalls {
  /** What V3 is asked with for a client; `refused`: a token that V3 has refused. */
  readonly authorise: (client: PostedClient, refused?: string) => Promise<PostedAuthorisation>
  /** As `Pace.acquire`. */
  readonly acquire: (client: PostedClient, side: Side, timeMs: number) => Promise<PaceRefusal | undefined>
  readonly evidenceKey: (scope: EvidenceScope) => Promise<PeriodKey>
  readonly note: (note: Note) => void
}

interface PostedAuthorisation {
  readonly credentials: V3Credentials
  readonly canRenew: boolean
}

type InternalError = Parameters<Events['internalError']>[0]

/** What happens in the thread. */
export type Note =
  /** The turn of an exchange has come: there is room for another. */
  | { readonly kind: 'begun'; readonly id: number }
  /** A side was asked; without a status it did not answer. */
  | { readonly kind: 'called'; readonly client: PostedClient; readonly side: Side; readonly status: number | undefined } // prettier-ignore
  | { readonly kind: 'unmarkedCodesUnknown'; readonly event: Parameters<Events['unmarkedCodesUnknown']>[0] }
  | { readonly kind: 'internalError'; readonly event: InternalError }

/** Microseconds of a clock that all threads share. */
export const nowMicros = (): number => Number(process.hrtime.bigint() / 1_000n)

export const toPostedClient = ({ partner, client, owner, identity }: Client): PostedClient => ({
  partner: partner.id,
  client: { authorization: client.authorization, subscriptionKey: client.subscriptionKey },
  owner,
  identity,
})

/** An unforeseen error as the log has it: without its message, which may quote a value. Without an error, a thread has ended. */
export function toInternalError(cause: unknown): InternalError {
  return cause instanceof Error
    ? { errorName: cause.name, stack: framesOf(cause) }
    : { errorName: cause === undefined ? 'background thread ended' : typeof cause, stack: [] }
}
