import type { Clock } from '../clock.ts'
import type { FailureScope } from '../http/failure-scope.ts'
import type { Slicing } from '../http/slices.ts'
import type { Journal } from '../journal/index.ts'
import type { Events } from '../observability/events.ts'
import type { AcceptedCredentials, TokenVerdicts } from '../partners/credentials.ts'
import { type Echo, type EchoProfile, freshProfile, learnEcho } from '../translate/index.ts'
import type { V3Client, V3Reader, V3Record, V3Reply } from '../v3/index.ts'
import type { ActiveRecords, Orphans } from './active-records.ts'
import type { PredecessorWatch } from './predecessors.ts'

/** The parts that the write engine works with; created once by the composition root. */
export interface WriteContext {
  readonly v3: V3Client
  /** Reads marks back from V3. */
  readonly reader: V3Reader
  /** The base address of V3: the same batch for another service is another batch. */
  readonly upstream: string
  readonly journal: Journal
  readonly predecessors: PredecessorWatch
  /** Whose share a request uses, and credentials that finish writes whose own credentials are not kept. */
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
  readonly slicing: Slicing
  /** Fails the run or the request that a failure belongs to which no code handles. */
  readonly failures: FailureScope
  readonly events: Events
  /** Does work that no client waits for within a span; undefined: nothing is traced. */
  readonly traceWork?:
    (<Result>(name: 'recovery', fields: object, work: () => Promise<Result>) => Promise<Result>) | undefined
  readonly clock: Clock
  /** Milliseconds since the epoch. */
  readonly nowMs: () => number
  /** A new random guid. */
  readonly newId: () => string
}

/** Learns from V3's answers how it stores values, for the comparison of marks that are read back. */
export type EchoLearning = ReturnType<typeof createEchoLearning>

/** Creates the learning of one V3 service. */
export function createEchoLearning(nowMs: () => number) {
  let profile = freshProfile
  return {
    /** V3 accepted a record. `timeSent`: its body had `RecordedOn`. */
    accepted: (posted: V3Record, timeSent: boolean, reply: V3Reply): void => {
      const postedOn = timeSent ? (posted.RecordedOn ?? undefined) : undefined
      profile = learnEcho(profile, { posted, postedOn, shown: reply, nowMs: nowMs(), proven: false })
    },
    /** A mark that was read back and is certainly the one that was posted. */
    readBack: (posted: V3Record, shown: Echo['shown']): void => {
      const postedOn = posted.RecordedOn ?? undefined
      profile = learnEcho(profile, { posted, postedOn, shown, nowMs: undefined, proven: true })
    },
    /** What is known so far. */
    profile: (): EchoProfile => profile,
    /** Replaces the profile by one that holds more. */
    use: (next: EchoProfile): void => {
      profile = next
    },
  }
}
