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

// All arguments of these calls are plain values. Buffers arrive as plain byte arrays.

export type PostedClient = Omit<Client, 'partner'> & { readonly partner: string }

export type PostedExchange = WithClient<OfferedExchange>
type WithClient<One> = One extends unknown ? Omit<One, 'client'> & { readonly client: PostedClient } : never

export interface ThreadStart {
  readonly config: PackedConfig
  /** The adapter's clock minus the clock of the machine. */
  readonly aheadMs: number
  /** Without a journal nothing is stored. */
  readonly hasStore: boolean
  /** True if whole comparisons are sent back too. */
  readonly isObserved: boolean
  readonly nice: number
}

export interface ThreadCalls {
  /** Compares an exchange whose client had the reply at `sinceMicros` (`nowMicros`). Rejects if the comparison itself fails. */
  readonly compare: (id: number, sinceMicros: number, exchange: PostedExchange) => Promise<PostedResult>
  /** Registers the keys of a write that is not compared. */
  readonly wrote: (partner: string, keys: readonly (string | undefined)[]) => void
  readonly use: (config: PackedConfig) => void
  /** Resolves once all work that was begun has ended. */
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
      /** `undefined` if nothing can be stored. */
      readonly evidence: { readonly period: number; readonly entry: EvidenceEntry } | undefined
      /** `undefined` if nobody observes comparisons. */
      readonly exchange: ComparedExchange | undefined
    }
  | Exclude<CheckEnd, { readonly kind: 'compared' }>

/** The main thread owns the tokens, the rate limits and the journal, and it counts and logs. */
export interface MainCalls {
  /** Returns the credentials for calls to V3 on behalf of a client. `refused` is a token that V3 has rejected. */
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
  /** The thread began with an exchange, so the queue has room for another. */
  | { readonly kind: 'begun'; readonly id: number }
  /** A side was called. `status` is `undefined` if it did not answer. */
  | { readonly kind: 'called'; readonly client: PostedClient; readonly side: Side; readonly status: number | undefined } // prettier-ignore
  | { readonly kind: 'unmarkedCodesUnknown'; readonly event: Parameters<Events['unmarkedCodesUnknown']>[0] }
  | { readonly kind: 'internalError'; readonly event: InternalError }

/** Returns the time of a clock that all threads share. */
export const nowMicros = (): number => Number(process.hrtime.bigint() / 1_000n)

export const toPostedClient = ({ partner, client, owner, identity }: Client): PostedClient => ({
  partner: partner.id,
  client: { authorization: client.authorization, subscriptionKey: client.subscriptionKey },
  owner,
  identity,
})

/** Drops the message of an unexpected error, because it may quote a value. An `undefined` cause means that a thread has ended. */
export function toInternalError(cause: unknown): InternalError {
  return cause instanceof Error
    ? { errorName: cause.name, stack: framesOf(cause) }
    : { errorName: cause === undefined ? 'background thread ended' : typeof cause, stack: [] }
}
