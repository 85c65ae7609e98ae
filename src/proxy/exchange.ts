import type { IncomingMessage, ServerResponse } from 'node:http'

import type { WireReply } from '../compare/wire-exchange.ts'
import { AdapterError } from '../errors.ts'
import type { RequestTarget } from '../http/request-target.ts'
import type { Client } from '../partners/partner.ts'
import type { StageEntry } from '../rollout/decide.ts'
import type { RequestKind, Side } from '../rollout/stage.ts'
import type { PartReply } from '../v2/index.ts'
import type { Plan } from '../writes/plan.ts'
import type { Answered } from '../writes/reply.ts'
import type { ForwardOutcome } from './forwarder.ts'

export interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly target: RequestTarget
  /** The part of the path before the route, in the client's spelling. */
  readonly prefix: string
  readonly client: Client
  readonly entry: StageEntry
  readonly side: Side
  readonly kind: RequestKind
  /** The unit that `canary` assigns to a side: the school that the token or a header names, otherwise the client. */
  readonly unit: string
  /** The time at which the request arrived, in milliseconds since the epoch. */
  readonly receivedMs: number
  /** The maximum size in bytes of the copy of the reply, or 0. With a copy, a write that V2 serves is read before it is forwarded. */
  readonly copyBytes: number
  /** The handler of the request fills in the result. */
  readonly result: ExchangeResult
}

export type Received = Omit<Exchange, 'copyBytes' | 'result'>

/** The result of an exchange. The router hands it over once, when the exchange is over. */
export interface ExchangeResult {
  /** Absent until a write has been read. `undefined` if the write cannot be read and V2 serves it unchanged. */
  plan?: Plan | undefined
  /** The parts of the reply of a write that V3 serves, by position. They have no JSON if the reply is not copied. */
  readonly parts: Map<number, PartReply>
  /** The time of the latest of `parts`. */
  settledMs?: number
  /** Absent if the exchange failed, or if nobody needs its outcome. */
  outcome?:
    /** A write that V3 answered, or that the journal answered with the stored reply. */
    | { readonly kind: 'answered'; readonly answered: Answered }
    | {
        readonly kind: 'relayed'
        /** The decompressed body, or `undefined` if the body cannot be read. */
        readonly body: Buffer | undefined
        readonly outcome: ForwardOutcome
        /** When V2's reply ended or its failure was known. */
        readonly endedMs: number
      }
    /** The reply of a read is `undefined` if no copy was made. */
    | { readonly kind: 'read'; readonly reply: WireReply | undefined }
  /** The error with which the whole request was refused. */
  cause?: unknown
}

/**
 * Checks that the stage of a request still applies. Must be called immediately before a write for V3 is stored, or before the first byte of
 * a write is sent to V2. Throws `ADP_STAGE_UNKNOWN` if other instances may have declared this instance dead since the side of the request
 * was decided.
 */
export function expectCurrent(entry: Pick<StageEntry, 'isCurrent'>): void {
  if (entry.isCurrent()) return
  throw new AdapterError(
    'ADP_STAGE_UNKNOWN',
    'The stage of this partner may have changed: another instance may already send the writes of this client to the other service. ' +
      'This copy of the request was not sent, but an earlier copy may have been applied. Send the same request again, unchanged.',
  )
}
