import type { IncomingMessage } from 'node:http'

import type { LiveComparison } from '../compare/live/live-comparison.ts'
import type { AddressList } from '../http/address.ts'
import type { SlowClients } from '../http/slow-clients.ts'
import type { Tracing } from '../observability/tracing.ts'
import type { Authorisation, Client, Partner } from '../partners/partner.ts'
import type { ReadContext } from '../reads/read-request.ts'
import type { LiveStages } from '../rollout/decide.ts'
import type { LiveSeen } from '../rollout/evidence/seen-writes.ts'
import type { LiveGuards } from '../rollout/guards/live-guards.ts'
import type { WholeReader } from '../upstream/index.ts'
import type { BatchLimits } from '../v2/index.ts'
import type { WriteContext } from '../writes/context.ts'
import type { ByteBudget } from './byte-budget.ts'
import type { Exchange, ExchangeObserver, Received } from './exchange.ts'
import type { Relays } from './forwarder.ts'
import type { PassThrough } from './pass-through.ts'

/** The parts that the handlers work with; created once by the composition root. */
export interface ProxyContext extends WriteContext {
  /** The client of a request; nothing is asked of a service for it. */
  readonly recognise: (request: IncomingMessage) => Client
  /** What V3 is asked with for a client. */
  readonly authorise: (request: IncomingMessage, client: Client) => Promise<Authorisation>
  /** Decides which side serves a request. */
  readonly stages: LiveStages
  /** Count what became of writes on each side. */
  readonly guards: LiveGuards
  /** Notes what the advice on the next step of a partner counts. */
  readonly seen: LiveSeen
  /** Notes that V2 was sent a write of a partner which the journal does not know. */
  readonly noteUnrecorded: (partner: string) => void
  /** Compares exchanges off the way of their clients. */
  readonly comparison: LiveComparison
  /** Observes each exchange beside the adapter's own observers; `undefined` if nothing else observes. */
  readonly observe?: ((exchange: Received) => Partial<ExchangeObserver>) | undefined
  /** Undefined: nothing is traced. */
  readonly tracing?: Pick<Tracing, 'serve' | 'describe' | 'call'> | undefined
  /** Sends on what V2 serves. */
  readonly relays: Relays
  /** Reads marks of V2 beside the way of a client's request. */
  readonly v2Reader: Pick<WholeReader, 'get'>
  /** Turn absolute links of replies into links of the adapter. */
  readonly rewriteLinks: boolean
  /** Counts a request of the partner until the function that is returned is called. */
  readonly enterPartner: (partner: Partner) => () => void
  readonly reads: ReadContext
  readonly passThrough: PassThrough
  /** The limits of a request that begins now; it keeps them. */
  readonly limits: () => BatchLimits
  readonly byteBudget: ByteBudget
  readonly slowClients: SlowClients
  readonly inFlight: InFlight
  /** Proxies whose forwarding headers are believed. */
  readonly trustedProxies: AddressList
  /** The address that clients call, where the configuration has it. */
  readonly publicUrl: URL | undefined
}

/** Answers one exchange that V3 serves. Throws the error that the request as a whole is refused for. */
export type Handle = (
  context: ProxyContext,
  exchange: Exchange,
  authorisation: Authorisation,
) => void | Promise<void>

/** The requests in flight, including those whose client has disconnected. */
export type InFlight = ReturnType<typeof createInFlight>

/** Creates the count that a shutdown waits for. */
export function createInFlight() {
  let count = 0
  let waiting: (() => void)[] = []
  const leave = (): void => {
    count -= 1
    if (count > 0) return
    for (const wake of waiting) wake()
    waiting = []
  }
  return {
    /** Counts a request until the function that is returned is called. */
    enter: (): (() => void) => {
      count += 1
      return leave
    },
    /** Resolves when nothing is being handled; ask it only when no new request can come. */
    idle: (): Promise<void> =>
      count === 0 ? Promise.resolve() : new Promise((resolve) => waiting.push(resolve)),
    /** Requests that are being handled now. */
    count: (): number => count,
  }
}
