import type { IncomingMessage, ServerResponse } from 'node:http'

import type { RequestTarget } from '../http/request-target.ts'
import type { Authorisation } from '../partners/partner.ts'
import type { RequestKind, StageEntry } from '../rollout/index.ts'
import type { ProxyContext } from './context.ts'
import type { GuardTrial } from './guard-trial.ts'
import type { WriteNote } from './note-write.ts'

/** One authorised request, on its way to the handler of its route. */
export interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly target: RequestTarget
  /** The path before the route, as the client wrote it. */
  readonly prefix: string
  readonly authorisation: Authorisation
  /** The side that was decided. */
  readonly entry: Pick<StageEntry, 'isCurrent' | 'stage' | 'revision'>
  readonly kind: RequestKind
  /** The school, as the unit of `canary`. */
  readonly unit: string
  /** Milliseconds since the epoch. */
  readonly receivedMs: number
  /** Takes what became of a write. */
  readonly trial: GuardTrial
  /** Takes the records of a write. */
  readonly note: WriteNote
}

/** Answers one exchange. Throws the error that the request as a whole is refused for. */
export type Handle = (context: ProxyContext, exchange: Exchange) => void | Promise<void>
