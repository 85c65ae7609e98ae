import type { IncomingMessage } from 'node:http'

import type { AddressList } from '../http/address-list.ts'
import type { SlowClients } from '../http/slow-clients.ts'
import type { Authorisation, Partner } from '../partners/partner.ts'
import type { ReadContext } from '../reads/context.ts'
import type { BatchLimits } from '../v2/index.ts'
import type { WriteContext } from '../writes/context.ts'
import type { ByteBudget } from './byte-budget.ts'
import type { InFlight } from './in-flight.ts'
import type { PassThrough } from './pass-through.ts'

/** The parts that the handlers work with; created once by the composition root. */
export interface ProxyContext extends WriteContext {
  readonly authorise: (request: IncomingMessage) => Promise<Authorisation>
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
}
