import { type Echo, type EchoProfile, freshProfile, learnEcho } from '../translate/index.ts'
import type { V3Record, V3Reply } from '../v3/index.ts'

/** Learns from V3's answers how it stores values, for the comparison of marks that are read back. */
export interface EchoLearning {
  /** V3 accepted a record. `timeSent`: its body had `RecordedOn`. */
  accepted(posted: V3Record, timeSent: boolean, reply: V3Reply): void
  /** A mark that was read back and is certainly the one that was posted. */
  readBack(posted: V3Record, shown: Echo['shown']): void
  /** What is known so far. */
  profile(): EchoProfile
  /** Replaces the profile by one that holds more. */
  use(profile: EchoProfile): void
}

/** Creates the learning of one V3 service. */
export function createEchoLearning(nowMs: () => number): EchoLearning {
  let profile = freshProfile
  return {
    accepted: (posted, timeSent, reply) => {
      const postedOn = timeSent ? (posted.RecordedOn ?? undefined) : undefined
      profile = learnEcho(profile, { posted, postedOn, shown: reply, nowMs: nowMs(), proven: false })
    },
    readBack: (posted, shown) => {
      const postedOn = posted.RecordedOn ?? undefined
      profile = learnEcho(profile, { posted, postedOn, shown, nowMs: undefined, proven: true })
    },
    profile: () => profile,
    use: (next) => {
      profile = next
    },
  }
}
