import type { StageEntry } from '../../src/rollout/decide.ts'
import type { PartReply } from '../../src/v2/index.ts'
import type { BatchRequest } from './simulated-instance.ts'
import type { Actor } from './world.ts'

/** A promise of the adapter that did not hold. */
export interface Finding {
  readonly kind:
    | 'lost' | 'doubled' | 'false' | 'order' | 'changed' | 'lent' | 'trusted' | 'ledger' | 'unsettled' | 'leftover' | 'crash' // prettier-ignore
  readonly subject: string
  readonly reason: string
}

export interface SentRecord {
  readonly name: string
  readonly key: string
  readonly position: number
  readonly batch: SentBatch
  /** The final answer that the client has, or `undefined` if the client has no final answer yet. */
  final: PartReply | undefined
  /** The number of different final answers that may still arrive, because V2 answers each request anew. */
  allowedChanges: number
}

/** One request of a client with a batch. */
export interface Send {
  readonly number: number
  readonly batch: SentBatch
  readonly token: string
  readonly instance: Actor
  /** The adapter's choice of the side and the stage, or `undefined` before the choice and in histories that V3 serves alone. */
  entry: Pick<StageEntry, 'side' | 'stage' | 'known'> | undefined
  /** The number of the journal's new batch for this request, or `undefined` if the request began no new batch. */
  journalBatch: number | undefined
  /** True if the adapter sent the request to V2 although the journal could not record it. */
  isUnrecorded: boolean
  /** True if this adapter had a stored final reply of V2 for the same token when the request arrived. */
  readonly wasAnswered: boolean
  /** The number of times that V2 received the request. */
  sentToV2: number
  isFinished: boolean
  /** The number of times that the adapter's clock had been set when the request arrived. */
  readonly clockSteps: number
}

export interface SentBatch {
  readonly number: number
  readonly client: SimulatedClient
  readonly request: Pick<BatchRequest, 'kind' | 'contentType' | 'body'>
  readonly records: SentRecord[]
  /** The adapters with a request in progress, one entry for each request. */
  activeAdapters: Actor[]
  sends: number
  lastSentMs: number
  /** The numbers of the journal's batches for this batch. */
  readonly journalBatches: number[]
  /** Checks that run when the client sends the batch again. */
  readonly checksBeforeResend: Set<() => void>
  /** True if no other batch of its client has the same ids. */
  readonly hasOwnIds: boolean
  /** True for a mismatch, which is answered 200 for every outcome of its records. */
  readonly isMismatch: boolean
  isAbandoned: boolean
  /** True if the batch was sent with a wrong token at least once. */
  wasDenied: boolean
}

export interface SimulatedClient {
  readonly name: string
  readonly school: number
  readonly tokens: string[]
  isDone: boolean
}
