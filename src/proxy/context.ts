import type { IncomingMessage } from 'node:http'

import type { AddressList } from '../http/address-list.ts'
import type { Slicing } from '../http/slices.ts'
import type { Journal } from '../journal/index.ts'
import type { Events } from '../observability/events.ts'
import type { ReadPlanner } from '../translate/index.ts'
import type { BatchLimits } from '../v2/index.ts'
import type { Clock, SharedReader, V3Client } from '../v3/index.ts'
import type { AcceptedCredentials } from './accepted-credentials.ts'
import type { ByteBudget } from './byte-budget.ts'
import type { SlowClients } from '../http/slow-clients.ts'
import type { InFlight } from './in-flight.ts'
import type { Authorisation } from './partner.ts'
import type { ActiveRecords } from './writes/active-records.ts'
import type { EchoLearning } from './writes/echo-learning.ts'
import type { Shares } from './shares.ts'
import type { Orphans } from './writes/orphans.ts'
import type { UnmarkedCodes } from './unmarked-codes.ts'
import type { TokenVerdicts } from './writes/token-verdicts.ts'
import type { Waiting } from './writes/waiting.ts'

/** What reads of V2 use. */
export interface ReadServices {
  readonly planner: ReadPlanner
  readonly reader: SharedReader
  readonly codes: UnmarkedCodes
  /** What budgets of time are counted with. */
  readonly clock: Clock
}

/** What the handlers use; made once by the composition root. */
export interface ProxyContext {
  readonly authorise: (request: IncomingMessage) => Promise<Authorisation>
  readonly v3: V3Client
  /** The base address of V3: the same batch for another service is another one. */
  readonly upstream: string
  readonly reads: ReadServices
  readonly journal: Journal
  /** Signs next links; the same in all instances of an adapter. */
  readonly linkSecret: Uint8Array
  readonly waiting: Waiting
  /** What finishes writes whose own credentials are not kept. */
  readonly accepted: AcceptedCredentials
  /** What the service said of tokens that asked for stored answers. */
  readonly verdicts: TokenVerdicts
  /**
   * Open records that nobody sends: of instances that are gone, and of runs of this one that came to no end. The background
   * finishes them.
   */
  readonly orphans: Orphans
  /** What V3 makes of the values of marks, as far as its answers show it. */
  readonly echoes: EchoLearning
  /** Told how long after the loss of an answer a read showed the mark, ms. */
  readonly onVisible: (afterMs: number) => void
  /** The records that runs of this process work on. */
  readonly active: ActiveRecords
  readonly limits: BatchLimits
  readonly byteBudget: ByteBudget
  readonly shares: Shares
  readonly slowClients: SlowClients
  readonly slicing: Slicing
  readonly inFlight: InFlight
  /** Proxies whose forwarding headers are believed. */
  readonly trustedProxies: AddressList
  readonly events: Events
  readonly clock: Clock
  /** Milliseconds since the epoch. */
  readonly nowMs: () => number
  /** A new random guid. */
  readonly newId: () => string
}
