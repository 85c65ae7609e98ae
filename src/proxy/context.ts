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
import type { Exchange, ExchangeResult, Received } from './exchange.ts'
import type { Relays } from './forwarder.ts'
import type { PassThrough } from './pass-through.ts'

export interface ProxyContext extends WriteContext {
  /** Identifies the client of a request without calling a service. */
  readonly recognise: (request: IncomingMessage) => Client
  /** Returns the credentials and rate limit for calls to V3 on behalf of a client. */
  readonly authorise: (request: IncomingMessage, client: Client) => Promise<Authorisation>
  readonly stages: LiveStages
  readonly guards: LiveGuards
  /** Records the writes on which the advice about a partner's next step is based. */
  readonly seen: LiveSeen
  /** Records that a write of a partner was sent to V2 although the journal does not know the write. */
  readonly noteUnrecorded: (partner: string) => void
  readonly comparison: LiveComparison
  /** Returns the recorder for an exchange that begins, or `undefined` if the exchange is not recorded. Default: nothing is recorded. */
  readonly recorder?: ((exchange: Received) => ExchangeRecorder | undefined) | undefined
  readonly tracing?: Pick<Tracing, 'serve' | 'describe' | 'call'> | undefined
  readonly relays: Relays
  /** Reads marks from V2 with the adapter's own calls. */
  readonly v2Reader: Pick<WholeReader, 'get'>
  readonly rewriteLinks: boolean
  /** Counts a request of the partner until the returned function is called. */
  readonly enterPartner: (partner: Partner) => () => void
  readonly reads: ReadContext
  readonly passThrough: PassThrough
  /** Returns the current limits. A request keeps the limits that were valid when it began. */
  readonly limits: () => BatchLimits
  readonly byteBudget: ByteBudget
  readonly slowClients: SlowClients
  readonly inFlight: InFlight
  readonly trustedProxies: AddressList
  /** The address that clients call, or `undefined` if the configuration does not set it. */
  readonly publicUrl: URL | undefined
}

interface ExchangeRecorder {
  /** The maximum size in bytes of the copy of the reply that the recorder needs, or 0 for no copy. */
  readonly copyBytes: number
  record(result: ExchangeResult): void
}

/** Answers one exchange that V3 serves. Throws the error with which the whole request is refused. */
export type Handle = (
  context: ProxyContext,
  exchange: Exchange,
  authorisation: Authorisation,
) => void | Promise<void>

export type InFlight = ReturnType<typeof createInFlight>

/** Creates the count of requests in flight, for which a shutdown waits. A request still counts after its client has disconnected. */
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
    /** Counts a request until the returned function is called. */
    enter: (): (() => void) => {
      count += 1
      return leave
    },
    /** Resolves when no request is in flight. Must not be called while new requests can arrive. */
    idle: (): Promise<void> =>
      count === 0 ? Promise.resolve() : new Promise((resolve) => waiting.push(resolve)),
    count: (): number => count,
  }
}
