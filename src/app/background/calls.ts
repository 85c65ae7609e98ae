import type { ComparedExchange, OfferedExchange } from '../../compare/live/exchange.ts'
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

// The calls between the main thread and the background thread. All arguments are plain values. A `Buffer` arrives as a `Uint8Array`.

export type PostedClient = Omit<Client, 'partner'> & { readonly partner: string }

export type PostedExchange = WithClient<OfferedExchange>
type WithClient<One> = One extends unknown ? Omit<One, 'client'> & { readonly client: PostedClient } : never

export interface ThreadStart {
  readonly config: PackedConfig
  /** The time by which the adapter's clock is ahead of the system clock, in milliseconds. */
  readonly aheadMs: number
  /** True if a journal is configured, so that evidence can be stored. */
  readonly hasStore: boolean
  /** True if the thread also sends whole comparisons back, for an observer. */
  readonly isObserved: boolean
  readonly nice: number
}

export interface ThreadCalls {
  /** Compares an exchange whose client received the reply at the time `sinceMicros` (`nowMicros`). Rejects if the comparison fails. */
  readonly compare: (id: number, sinceMicros: number, exchange: PostedExchange) => Promise<PostedResult>
  /** Registers the keys of a write that is not compared. */
  readonly wrote: (partner: string, keys: readonly (string | undefined)[]) => void
  readonly use: (config: PackedConfig) => void
  /** Stops the thread. Resolves once all work that was begun has ended. */
  readonly close: () => Promise<void>
}

export interface PostedResult {
  readonly end: PostedEnd
  readonly learned: readonly string[]
}

export type PostedEnd =
  | {
      readonly kind: 'compared'
      readonly seen: ComparedSeen
      /** The evidence to store, or `undefined` if there is no evidence or no journal. */
      readonly evidence: { readonly period: number; readonly entry: EvidenceEntry } | undefined
      /** The whole comparison, or `undefined` if nobody observes comparisons. */
      readonly exchange: ComparedExchange | undefined
    }
  | Exclude<CheckEnd, { readonly kind: 'compared' }>

/** The functions that the background thread calls. Only the main thread has tokens, rate limits, the journal, metrics and the log. */
export interface MainCalls {
  /**
   * Returns a client's credentials for V3. `refused` is the value of `Authorization` that V3 has rejected; its token is renewed if
   * possible.
   */
  readonly authorise: (client: PostedClient, refused?: string) => Promise<PostedAuthorisation>
  readonly acquire: (client: PostedClient, side: Side, timeMs: number) => Promise<PaceRefusal | undefined>
  readonly evidenceKey: (scope: EvidenceScope) => Promise<PeriodKey>
  readonly note: (note: Note) => void
}

interface PostedAuthorisation {
  readonly credentials: V3Credentials
  readonly canRenew: boolean
}

type InternalError = Parameters<Events['internalError']>[0]

export type Note =
  /** The thread has begun a comparison, so the exchange no longer takes a place in the queue. */
  | { readonly kind: 'begun'; readonly id: number }
  /** The thread has called V2 or V3. `status` is `undefined` if there was no answer. */
  | { readonly kind: 'called'; readonly client: PostedClient; readonly side: Side; readonly status: number | undefined } // prettier-ignore
  | { readonly kind: 'unmarkedCodesUnknown'; readonly event: Parameters<Events['unmarkedCodesUnknown']>[0] }
  | { readonly kind: 'internalError'; readonly event: InternalError }

/** Returns the time of a clock that all threads share, in microseconds. */
export const nowMicros = (): number => Number(process.hrtime.bigint() / 1_000n)

export const toPostedClient = ({ partner, client, owner, identity }: Client): PostedClient => ({
  partner: partner.id,
  client: { authorization: client.authorization, subscriptionKey: client.subscriptionKey },
  owner,
  identity,
})

/**
 * Converts a failure into a log event without its message, which may quote a value. The cause `undefined` means that a thread has ended.
 */
export function toInternalError(cause: unknown): InternalError {
  return cause instanceof Error
    ? { errorName: cause.name, stack: framesOf(cause) }
    : { errorName: cause === undefined ? 'background thread ended' : typeof cause, stack: [] }
}
