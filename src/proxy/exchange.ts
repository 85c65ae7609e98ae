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

/** One request of a client, on its way to the handler of its route. */
export interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly target: RequestTarget
  /** The path before the route, as the client wrote it. */
  readonly prefix: string
  readonly client: Client
  readonly entry: StageEntry
  /** The side that serves it. */
  readonly side: Side
  readonly kind: RequestKind
  /** The school, as the unit of `canary`. */
  readonly unit: string
  /** Milliseconds since the epoch. */
  readonly receivedMs: number
  readonly observer: ExchangeObserver
}

/** An exchange that is not observed yet. */
export type Received = Omit<Exchange, 'observer'>

/** The reply that an exchange got. */
export type Replied =
  /** A write that V3 has answered, or the journal with what is kept of it. */
  | { readonly kind: 'answered'; readonly planned: PlannedRequest; readonly answered: Answered }
  /** A write that V2 was sent. */
  | {
      readonly kind: 'relayed'
      /** Decompressed; undefined: it cannot be read. */
      readonly body: Buffer | undefined
      readonly plan: Plan | undefined
      readonly outcome: ForwardOutcome
      readonly reading: ReplyReading
    }
  /** A read; the reply is undefined where no copy was made. */
  | { readonly kind: 'read'; readonly reply: WireReply | undefined }

/** Takes what happens to an exchange. Nothing that it does changes the exchange. */
export interface ExchangeObserver {
  /** Bytes of the reply that the copy for the observer may have; 0 if it wants none. With a copy, it is also given the body of a write that V2 serves. */
  readonly copyBytes: number
  /** A write was read; undefined: it cannot be read, and V2 serves it as it is. */
  decoded(plan: Plan | undefined): void
  /** A record of a write that V3 serves has its part of the reply. */
  settled(position: number, part: PartReply): void
  replied(reply: Replied): void | Promise<void>
  /** The exchange is over; `cause`: why it was refused as a whole. */
  ended(cause: unknown): void
}

/** One observer for all of them. */
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
 * To be called right before a write is made durable for V3, or its first byte is sent to V2. Error `ADP_STAGE_UNKNOWN` where this instance
 * may have been taken for dead since the side of the request was decided.
 */
export function expectCurrent(entry: Pick<StageEntry, 'isCurrent'>): void {
  if (entry.isCurrent()) return
  throw new AdapterError(
    'ADP_STAGE_UNKNOWN',
    'Another instance may serve this client on the other side by now. Nothing was sent; send the request again.',
  )
}
