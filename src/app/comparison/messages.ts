import type { CheckEnd, OfferedExchange } from '../../compare/live/index.ts'
import type { CheckKind, ComparedExchange } from '../../compare/compared-exchange.ts'
import type { PartnerRule } from '../../compare/diff/index.ts'
import type { ErrorCode } from '../../errors.ts'
import type { ComparedSeen } from '../../observability/compare-metrics.ts'
import type { Events } from '../../observability/events.ts'
import type { Client, Partner } from '../../partners/partner.ts'
import type { EvidenceEntry, EvidenceScope, PeriodKey, Side } from '../../rollout/index.ts'
import type { CallLimit, UpstreamTimeouts } from '../../upstream/index.ts'
import type { BatchLimits } from '../../v2/index.ts'
import type { V3Credentials } from '../../v3/index.ts'

// Messages between the thread of comparisons and the main thread. All of them are plain values.

/** A partner without what calls services: its keys and tokens are asked for. */
export type PostedPartner = Omit<Partner, 'v2' | 'tokens' | 'subscriptionKey'> & {
  readonly v2: string | undefined
  readonly tokens: undefined
  readonly subscriptionKey: undefined
  readonly rules: readonly PartnerRule[]
}

/** A client with the id of its partner. */
export type PostedClient = Omit<Client, 'partner'> & { readonly partner: string }

/** An exchange whose bodies are bytes of their own. */
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
  /** False: no journal is configured, so the pace is that of this process, and nothing is kept. */
  readonly hasStore: boolean
  /** True: the thread also posts whole comparisons. */
  readonly isObserved: boolean
  /** The nice value of the thread. */
  readonly nice: number
  /** Sides that have answered 429. */
  readonly silent: readonly Silence[]
}

/** What evidence counts of an exchange that was not compared. */
export type ExchangeHead = Omit<ComparedExchange, 'records' | 'delaysMs' | 'check' | 'fingerprint'>

/** Checks of one kind, with their number. */
export interface CheckCount {
  readonly exchange: ExchangeHead
  readonly check: CheckKind
  readonly times: number
}

/** The head of an offered or compared exchange. */
export function headOf(
  exchange: (OfferedExchange | ComparedExchange) & { readonly partner?: string },
): ExchangeHead {
  const { stage, revision, served, unit, kind, receivedMs } = exchange
  const partner = 'client' in exchange ? exchange.client.partner.id : exchange.partner
  return { partner, stage, revision, served, unit, kind, receivedMs }
}

export type ToThread =
  | {
      readonly kind: 'offer'
      readonly id: number
      /** When its client had the reply: microseconds of `process.hrtime`, which all threads share. */
      readonly sinceMicros: number
      readonly exchange: PostedExchange
    }
  | { readonly kind: 'wrote'; readonly writes: readonly PostedWrite[] }
  | { readonly kind: 'throttled'; readonly partner: string }
  | { readonly kind: 'missed'; readonly missed: readonly CheckCount[] }
  | { readonly kind: 'settings'; readonly settings: ThreadSettings }
  | { readonly kind: 'result'; readonly id: number; readonly value: unknown }
  | { readonly kind: 'failure'; readonly id: number; readonly failure: Failure }
  | { readonly kind: 'close' }

export type FromThread =
  | { readonly kind: 'notes'; readonly notes: readonly Note[] }
  | ({ readonly kind: 'call'; readonly id: number } & ThreadCall)
  | { readonly kind: 'closed' }

/** A write that is not compared. */
export interface PostedWrite {
  readonly partner: string
  /** Keys of its records, one a line: one text is copied faster than many. */
  readonly keys: string
}

/** A side that no comparison asks for some time. */
export interface Silence {
  readonly partner: string
  readonly side: Side
  readonly forMs: number
}

/** The end of a check, as far as it is counted. */
export type PostedEnd =
  | { readonly kind: 'compared'; readonly seen: ComparedSeen }
  | Exclude<CheckEnd, { readonly kind: 'compared' }>

/** What the main thread counts, logs and acts on. */
export type Note =
  /** The comparison of an exchange has begun: there is room for another. */
  | { readonly kind: 'begun'; readonly id: number }
  /** As many keys of writes were noted. */
  | { readonly kind: 'wrote'; readonly keys: number }
  | ({ readonly kind: 'silent' } & Silence)
  | { readonly kind: 'ended'; readonly id: number; readonly check: CheckKind; readonly end: PostedEnd }
  | { readonly kind: 'following'; readonly batches: number }
  | {
      readonly kind: 'called'
      readonly partner: string
      readonly side: Side
      readonly status: number | undefined
    }
  | {
      readonly kind: 'kept'
      readonly partner: string
      readonly checks: readonly CheckCount[]
      readonly isKept: boolean
    }
  | { readonly kind: 'compared'; readonly exchange: ComparedExchange }
  | { readonly kind: 'internalError'; readonly event: Parameters<Events['internalError']>[0] }
  | { readonly kind: 'unmarkedCodesUnknown'; readonly event: Parameters<Events['unmarkedCodesUnknown']>[0] }
  | { readonly kind: 'learnedNotKept'; readonly event: Parameters<Events['learnedNotKept']>[0] }
  | { readonly kind: 'evidenceNotKept'; readonly event: Parameters<Events['evidenceNotKept']>[0] }

/** What V3 is asked with for a client. */
export interface PostedAuthorisation {
  readonly credentials: V3Credentials
  readonly canRenew: boolean
  /** True: the calls of the partner's clients have a rate limit. */
  readonly isLimited: boolean
}

/** What the thread asks the main thread for. Rejects with `AdapterError`. */
export interface ThreadCalls {
  readonly authorise: (client: PostedClient) => Promise<PostedAuthorisation>
  /** Credentials in place of these, which V3 has refused. */
  readonly renew: (client: PostedClient, refused: V3Credentials) => Promise<V3Credentials>
  /** V3 has accepted the credentials of the client. */
  readonly accepted: (client: PostedClient) => Promise<void>
  /** Acquires a call within this time, behind those of clients. */
  readonly acquire: (client: PostedClient, leftMs: number) => Promise<boolean>
  /** As `RateLimit.sincePauseMs`. */
  readonly sincePauseMs: (client: PostedClient) => Promise<number | undefined>
  readonly reservePace: (name: string, limit: CallLimit, calls: number) => Promise<readonly number[]>
  readonly pausePace: (name: string, ms: number) => Promise<void>
  readonly sincePacePauseMs: (name: string) => Promise<number>
  readonly evidenceKey: (scope: EvidenceScope) => Promise<PeriodKey>
  readonly addEvidence: (period: number, entries: readonly EvidenceEntry[]) => Promise<boolean>
  readonly readEvidence: (name: string) => Promise<string | undefined>
  /** Replaces a text that is still the one that was read; false: it is another. */
  readonly replaceEvidence: (name: string, read: string | undefined, text: string) => Promise<boolean>
}

/** One call with its name. */
export type ThreadCall = {
  [Name in keyof ThreadCalls]: { readonly name: Name; readonly args: Parameters<ThreadCalls[Name]> }
}[keyof ThreadCalls]

/** An error that came from the other thread. */
export interface Failure {
  /** Of `AdapterError`; undefined: it was another error. */
  readonly code: ErrorCode | undefined
  readonly message: string
}
