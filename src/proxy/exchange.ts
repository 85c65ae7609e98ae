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
  /** The path before the segments of the route, in the client's spelling: `/acme` in `/acme/V2/Attendance/$batch`. */
  readonly prefix: string
  readonly client: Client
  readonly entry: StageEntry
  readonly side: Side
  readonly kind: RequestKind
  /** The unit that `canary` assigns to a side: the school that the token or a header names, otherwise the client. */
  readonly unit: string
  /** The time at which the request arrived, in milliseconds since the epoch. */
  readonly receivedMs: number
  /** The maximum size of the copy of the reply in bytes, or 0 for no copy. With a copy, a write for V2 is read before it is forwarded. */
  readonly copyBytes: number
  readonly result: ExchangeResult
}

export type Received = Omit<Exchange, 'copyBytes' | 'result'>

/** The result of an exchange. `openExchange` evaluates the result once, when the exchange has ended. */
export interface ExchangeResult {
  /** The decoded write. Missing until the write is decoded, and `undefined` if the write cannot be decoded and V2 gets it unchanged. */
  plan?: Plan | undefined
  /** The parts of the reply to a write that V3 serves, by position. The parts have no JSON if the reply is not copied. */
  readonly parts: Map<number, PartReply>
  /** The time at which the last of `parts` was set, in milliseconds since the epoch. */
  settledMs?: number
  /** The outcome. Missing if the exchange failed, or if the outcome is not needed. */
  outcome?:
    /** A write that V3 answered, or that was answered with the reply stored in the journal. */
    | { readonly kind: 'answered'; readonly answered: Answered }
    | {
        readonly kind: 'relayed'
        /** The decompressed body of the request, or `undefined` if the body cannot be read. */
        readonly body: Buffer | undefined
        readonly outcome: ForwardOutcome
        /** The time at which V2's reply ended or failed, in milliseconds since the epoch. */
        readonly endedMs: number
      }
    /** A read. `reply` is the copy of its reply, or `undefined` if no copy was made. */
    | { readonly kind: 'read'; readonly reply: WireReply | undefined }
  /** The error with which the request was refused as a whole, if there is one. */
  cause?: unknown
}

/**
 * Checks that the stage of a request still applies. Must be called immediately before a write for V3 is stored, or before the first byte of
 * a write is sent to V2. Throws `ADP_STAGE_UNKNOWN` if other instances may have declared this instance dead after it chose the side of the
 * request.
 */
export function expectCurrent(entry: Pick<StageEntry, 'isCurrent'>): void {
  if (entry.isCurrent()) return
  throw new AdapterError(
    'ADP_STAGE_UNKNOWN',
    'The stage of this partner may have changed: another instance may already send the writes of this client to the other service. ' +
      'This copy of the request was not sent, but an earlier copy may have been applied. Send the same request again, unchanged.',
  )
}
