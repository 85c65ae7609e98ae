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
  /** The final answer, as the client first read it. */
  final: PartReply | undefined
  /** How often another answer may still replace it, because V2 received the batch again and answers anew. */
  changes: number
}

/** One request with a batch. */
export interface Send {
  readonly number: number
  readonly batch: SentBatch
  readonly token: string
  readonly instance: Actor
  /** The side that its adapter has chosen, or `undefined` if there is none yet or V3 serves everything. */
  entry: Pick<StageEntry, 'side' | 'stage' | 'known'> | undefined
  /** The number that the journal gave the batch, or `undefined` if the journal knew the batch or does not know of this request. */
  begun: number | undefined
  /** True if V2 received the request without the journal's knowledge. */
  isUnrecorded: boolean
  /** True if the adapter had V2's final reply to the batch for the same token when the request arrived. */
  readonly wasAnswered: boolean
  /** The number of times that V2 received the request. */
  relayed: number
  /** True if its adapter has finished the request. */
  isOver: boolean
  /** The number of times that the clock of its adapter was set before. */
  readonly clockSteps: number
}

export interface SentBatch {
  readonly number: number
  readonly client: SimulatedClient
  readonly request: Pick<BatchRequest, 'kind' | 'contentType' | 'body'>
  readonly records: SentRecord[]
  /** The adapters that work on a request with the batch, one entry for each request. */
  atWork: Actor[]
  sends: number
  lastSentMs: number
  /** The numbers that the journal gave the batch. */
  readonly begun: number[]
  /** True if the batch must be checked before it is sent again. */
  readonly untilSent: Set<() => void>
  /** True if no other batch of its client has the same ids. */
  readonly hasOwnIds: boolean
  /** True if its ids differ, so that it is answered 200 whatever its records' outcomes are. */
  readonly isHidden: boolean
  /** True if its client has given it up. */
  isAbandoned: boolean
  /** True if it was sent with a wrong token at least once. */
  wasDenied: boolean
}

export interface SimulatedClient {
  readonly name: string
  readonly school: number
  readonly tokens: string[]
  isDone: boolean
}
