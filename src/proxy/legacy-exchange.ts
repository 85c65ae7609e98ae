import type { IncomingMessage, ServerResponse } from 'node:http'

import type { Client } from '../partners/partner.ts'
import type { RequestKind, StageEntry } from '../rollout/index.ts'
import type { ExchangeCopy } from './copy-exchange.ts'
import type { GuardTrial } from './guard-trial.ts'
import type { WriteNote } from './note-write.ts'

/** One request that V2 serves. Its credentials are V2's to judge. */
export interface LegacyExchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly client: Client
  readonly entry: StageEntry
  readonly kind: RequestKind
  /** The school, as the unit of `canary`. */
  readonly unit: string
  /** The path as the client wrote it. */
  readonly path: string
  /** The part of it before the route. */
  readonly prefix: string
  /** Milliseconds since the epoch. */
  readonly receivedMs: number
  /** Takes the side that served, where the exchange is recorded. */
  readonly copy: ExchangeCopy | undefined
  /** Takes what became of a write. */
  readonly trial: GuardTrial
  /** Takes the records of a write. */
  readonly note: WriteNote
}
