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

export interface WriteContext {
  readonly v3: V3Client
  readonly reader: V3Reader
  /** The base address of V3, which is part of a batch's identity: the same bytes for another service are a different batch. */
  readonly upstream: string
  readonly journal: Journal
  readonly predecessors: PredecessorWatch
  /**
   * The credentials that V3 accepted. They decide whether a request uses its owner's share of connections and queue places or the share of
   * newcomers, and recovery uses them to finish writes whose own credentials are not stored.
   */
  readonly accepted: AcceptedCredentials
  readonly verdicts: TokenVerdicts
  /** Open records that dead instances, or runs of this process, could not finish. Recovery finishes them. */
  readonly orphans: Orphans
  readonly echoes: EchoLearning
  /** Called with the time in milliseconds from the loss of a reply to the first read that showed the mark. */
  readonly onVisible: (afterMs: number) => void
  readonly active: ActiveRecords
  readonly slicing: Slicing
  readonly failures: FailureScope
  readonly events: Events
  /** Runs background work within a span of a trace. `undefined` if tracing is off. */
  readonly traceWork?:
    (<Result>(name: 'recovery', fields: object, work: () => Promise<Result>) => Promise<Result>) | undefined
  readonly clock: Clock
  /** Returns milliseconds since the epoch. */
  readonly nowMs: () => number
  readonly newId: () => string
}

/** Learns from V3's replies how V3 changes the values that it stores, so that a read-back recognises a posted record in a stored mark. */
export type EchoLearning = ReturnType<typeof createEchoLearning>

export function createEchoLearning(nowMs: () => number) {
  let profile = freshProfile
  return {
    /** Learns from a record that V3 accepted. `timeSent` is true if the posted body had `RecordedOn`. */
    accepted: (posted: V3Record, timeSent: boolean, reply: V3Reply): void => {
      const postedOn = timeSent ? (posted.RecordedOn ?? undefined) : undefined
      profile = learnEcho(profile, { posted, postedOn, shown: reply, nowMs: nowMs(), proven: false })
    },
    /** Learns from a mark that was read back and is certainly the posted mark. */
    readBack: (posted: V3Record, shown: Echo['shown']): void => {
      const postedOn = posted.RecordedOn ?? undefined
      profile = learnEcho(profile, { posted, postedOn, shown, nowMs: undefined, proven: true })
    },
    profile: (): EchoProfile => profile,
    replaceProfile: (next: EchoProfile): void => {
      profile = next
    },
  }
}
