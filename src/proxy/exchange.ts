import type { IncomingMessage, ServerResponse } from 'node:http'

import type { WireReply } from '../compare/wire-exchange.ts'
import { AdapterError } from '../errors.ts'
import type { RequestTarget } from '../http/request-target.ts'
import type { Client } from '../partners/partner.ts'
import type { StageEntry } from '../rollout/decide.ts'
import type { RequestKind, Side } from '../rollout/stage.ts'
import type { PartReply } from '../v2/index.ts'
import type { Plan, PlannedRequest } from '../writes/plan.ts'
import type { ReplyReading } from '../writes/relayed-reply.ts'
import type { Answered } from '../writes/reply.ts'
import type { ForwardOutcome } from './forwarder.ts'

export interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly target: RequestTarget
  /** The path in front of the route, in the client's spelling. */
  readonly prefix: string
  readonly client: Client
  readonly entry: StageEntry
  readonly side: Side
  readonly kind: RequestKind
  /** The unit that `canary` assigns to a side: the school that the token or a header names, otherwise the client. */
  readonly unit: string
  /** Milliseconds since the epoch. */
  readonly receivedMs: number
  readonly observer: ExchangeObserver
}

export type Received = Omit<Exchange, 'observer'>

export type Replied =
  /** A write that V3 answered, or that the journal answered with the stored reply. */
  | { readonly kind: 'answered'; readonly planned: PlannedRequest; readonly answered: Answered }
  | {
      readonly kind: 'relayed'
      /** The decompressed body, or `undefined` if the body cannot be read. */
      readonly body: Buffer | undefined
      readonly plan: Plan | undefined
      readonly outcome: ForwardOutcome
      readonly reading: ReplyReading
    }
  /** The reply of a read is `undefined` if no copy was made. */
  | { readonly kind: 'read'; readonly reply: WireReply | undefined }

/** Receives the events of an exchange and never changes the exchange. */
export interface ExchangeObserver {
  /** The maximum size of the copy of a reply, or 0. With a copy, the observer also receives the body of a write that V2 serves. */
  readonly copyBytes: number
  /** Called when a write has been read. `plan` is `undefined` if the write cannot be read and V2 serves it unchanged. */
  decoded(plan: Plan | undefined): void
  /** Called when a record of a write that V3 serves has its part of the reply. */
  settled(position: number, part: PartReply): void
  replied(reply: Replied): void | Promise<void>
  /** Called when the exchange is over. `cause` is the error with which the whole request was refused, if it was. */
  ended(cause: unknown): void
}

export function observeAll(observers: readonly Partial<ExchangeObserver>[]): ExchangeObserver {
  return {
    copyBytes: Math.max(0, ...observers.map(({ copyBytes = 0 }) => copyBytes)),
    decoded: (plan) => observers.forEach((one) => one.decoded?.(plan)),
    settled: (position, part) => observers.forEach((one) => one.settled?.(position, part)),
    replied: async (reply) => {
      for (const one of observers) await one.replied?.(reply)
    },
    ended: (cause) => observers.forEach((one) => one.ended?.(cause)),
  }
}

/**
 * Checks that the stage of a request still applies. Call this immediately before a write is made durable for V3, or before its first byte
 * is sent to V2. Throws `ADP_STAGE_UNKNOWN` if other instances may have declared this instance dead since the side of the request was
 * decided.
 */
export function expectCurrent(entry: Pick<StageEntry, 'isCurrent'>): void {
  if (entry.isCurrent()) return
  throw new AdapterError(
    'ADP_STAGE_UNKNOWN',
    'The stage of this partner may have changed: another instance may already send the writes of this client to the other service. ' +
      'This copy of the request was not sent, but an earlier copy may have been applied. Send the same request again, unchanged.',
  )
}
