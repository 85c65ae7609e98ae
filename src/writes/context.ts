import type { Slicing } from '../http/slices.ts'
import type { Journal } from '../journal/index.ts'
import type { Events } from '../observability/events.ts'
import type { AcceptedCredentials } from '../partners/accepted-credentials.ts'
import type { QueueKeys } from '../partners/queue-keys.ts'
import type { V3Client, V3Reader } from '../v3/index.ts'
import type { Clock } from '../clock.ts'
import type { ActiveRecords } from './active-records.ts'
import type { EchoLearning } from './echo-learning.ts'
import type { Orphans } from './orphans.ts'
import type { PredecessorWatch } from './predecessors.ts'
import type { TokenVerdicts } from './token-verdicts.ts'

/** The parts that the write engine works with; created once by the composition root. */
export interface WriteContext {
  readonly v3: V3Client
  /** Reads marks back from V3. */
  readonly reader: V3Reader
  /** The base address of V3: the same batch for another service is another batch. */
  readonly upstream: string
  readonly journal: Journal
  readonly predecessors: PredecessorWatch
  /** Credentials that finish writes whose own credentials are not kept. */
  readonly accepted: AcceptedCredentials
  /** V3's verdicts on tokens that asked for stored answers. */
  readonly verdicts: TokenVerdicts
  /**
   * Open records without a run: of instances that are gone, and of runs of this process that could not finish. Recovery
   * finishes them.
   */
  readonly orphans: Orphans
  /** How V3 changes the values of marks, learned from its replies. */
  readonly echoes: EchoLearning
  /** Called with the time from the loss of an answer to the first read that showed the mark, ms. */
  readonly onVisible: (afterMs: number) => void
  /** The records that runs of this process work on. */
  readonly active: ActiveRecords
  readonly queueKeys: QueueKeys
  readonly slicing: Slicing
  readonly events: Events
  readonly clock: Clock
  /** Milliseconds since the epoch. */
  readonly nowMs: () => number
  /** A new random guid. */
  readonly newId: () => string
}
