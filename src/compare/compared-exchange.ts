import type { Side, Stage } from '../rollout/stage.ts'
import type { Comparison } from './verdict.ts'
import type { ExchangeKind } from './wire-exchange.ts'

/**
 * What was compared. `reply`: the reply that the adapter would have built against that of V2. `visible`: V3 was read for what V2 accepted.
 * `readBack`: V2 was read for what V3 accepted. `answers`: answer to a read against answer.
 */
export type CheckKind = 'reply' | 'visible' | 'readBack' | 'answers'

/** What a record shows that advice wants to have seen. */
export type RecordTrait = 'late' | 'comment' | 'correction'

/** One compared record of a live exchange. It holds ids: it is hashed before it is kept, and never logged. */
export interface ComparedRecord extends Comparison {
  readonly learner: string | undefined
  /** Of the session, `YYYY-MM-DD`; undefined: not known. */
  readonly day: string | undefined
  /** Id or letter of the attendance code. */
  readonly code: string | undefined
  readonly codeClass: 'code:present' | 'code:absent' | 'code:neither' | undefined
  readonly traits: readonly RecordTrait[]
  /** Codes of the errors that V2 answered with, such as `ATT_VAL_2`. */
  readonly errorCodes: readonly string[]
}

/** What of a live exchange is kept beside its bodies. */
export interface ExchangeHead {
  readonly partner: string
  readonly stage: Stage
  readonly revision: number
  /** The side that served the client. */
  readonly served: Side
  /** The school, as the unit of `canary`. */
  readonly unit: string
  readonly kind: ExchangeKind
  readonly receivedMs: number
}

/** A live exchange that was compared. */
export interface ComparedExchange extends ExchangeHead {
  readonly check: CheckKind
  /** Equal for a request that was sent again, such as its digest; its counts count once. Undefined: it counts each time. */
  readonly fingerprint?: string | undefined
  /** Empty: the exchange was sampled and was not compared: it was dropped, skipped, or could not be. */
  readonly records: readonly ComparedRecord[]
  /** `visible` and `readBack`: how long after the reply the marks were found, one for each record that was. */
  readonly delaysMs: readonly number[]
}

/** Takes what was compared; never throws and never waits. */
export type OnCompared = (exchange: ComparedExchange) => void
