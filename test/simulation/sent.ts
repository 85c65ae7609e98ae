import type { StageEntry } from '../../src/rollout/decide.ts'
import type { PartReply } from '../../src/v2/index.ts'
import type { BatchRequest } from './simulated-instance.ts'
import type { Actor } from './world.ts'

/** A promise of the adapter that did not hold. */
export interface Finding {
  readonly kind:
    | 'lost' | 'doubled' | 'false' | 'order' | 'changed' | 'lent' | 'trusted' | 'ledger' | 'unsettled' | 'leftover' | 'crash' // prettier-ignore
  readonly of: string
  readonly because: string
}

/** A record as its client knows it. */
export interface SentRecord {
  readonly name: string
  readonly key: string
  readonly position: number
  readonly batch: SentBatch
  /** The final answer, as the client read it first. */
  final: PartReply | undefined
  /** How often another one may still take its place: V2 was sent the batch again, and answers anew. */
  changes: number
}

/** One request with a batch. */
export interface Send {
  readonly number: number
  readonly batch: SentBatch
  readonly token: string
  readonly instance: Actor
  /** The side that its adapter has decided; undefined: none yet, or V3 serves everything. */
  entry: Pick<StageEntry, 'side' | 'stage' | 'known'> | undefined
  /** The number that the journal gave the batch for it; undefined: it knew the batch, or does not know of this request. */
  begun: number | undefined
  /** V2 was sent it, and the journal does not know that. */
  isUnrecorded: boolean
  /** When it came, this adapter had V2's final reply to the batch, for the same token. */
  readonly wasAnswered: boolean
  /** How often V2 was sent it. */
  relayed: number
  /** Its adapter has done with it. */
  isOver: boolean
  /** How often the clock of its adapter was set before. */
  readonly clockSteps: number
}

export interface SentBatch {
  readonly number: number
  readonly client: SimulatedClient
  readonly request: Pick<BatchRequest, 'kind' | 'contentType' | 'body'>
  readonly records: SentRecord[]
  /** The adapters that work on a request with it, one for each request. */
  atWork: Actor[]
  sends: number
  lastSentMs: number
  /** The numbers that the journal gave it. */
  readonly begun: number[]
  /** To be checked before it is sent again. */
  readonly untilSent: Set<() => void>
  /** No other batch of its client has its ids. */
  readonly hasOwnIds: boolean
  /** Its ids differ: it is answered 200 whatever becomes of its records. */
  readonly isHidden: boolean
  /** Its client has given it up. */
  isAbandoned: boolean
  /** It was sent with a wrong token at least once. */
  wasDenied: boolean
}

export interface SimulatedClient {
  readonly name: string
  readonly school: number
  readonly tokens: string[]
  isDone: boolean
}
