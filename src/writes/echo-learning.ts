import {
  type Echo,
  type EchoProfile,
  freshProfile,
  learnEcho,
  type ReadBackKnowledge,
} from '../translate/index.ts'
import type { V3Record, V3Reply } from '../v3/index.ts'
import { createConfirmedMarks } from './confirmed-marks.ts'

/** Learns from V3's answers how it stores values, for the comparison of marks that are read back. */
export interface EchoLearning {
  /** V3 accepted a record. `timeSent`: its body had `RecordedOn`. */
  accepted(posted: V3Record, timeSent: boolean, reply: V3Reply): void
  /** A mark that was read back and is certainly the one that was posted. */
  readBack(posted: V3Record, shown: Echo['shown']): void
  /** The knowledge for the comparison of one record; without confirmed marks where these may be newer than the record. Default: with them. */
  knowledge(timeSent: boolean, options?: { readonly withConfirmed: boolean }): ReadBackKnowledge
  profile(): EchoProfile
  /** Replaces the profile by one that holds more. */
  use(profile: EchoProfile): void
}

/** After this many answers that taught nothing, one in `EVERY` is examined. */
const STABLE_AFTER = 256
const EVERY = 64

/** Creates the learning of one V3 service. */
export function createEchoLearning(nowMs: () => number): EchoLearning {
  const marks = createConfirmedMarks()
  let profile = freshProfile
  let withoutNews = 0
  const learn = (echo: Echo): void => {
    const next = learnEcho(profile, echo)
    const isNews = next !== profile && !isWidenedSkew(next, profile)
    profile = next
    withoutNews = isNews ? 0 : withoutNews + 1
  }
  return {
    accepted: (posted, timeSent, reply) => {
      if (typeof reply.RecordedOn === 'string') marks.add(reply.ExternalID, reply.RecordedOn)
      if (withoutNews > STABLE_AFTER && withoutNews % EVERY !== 0) {
        withoutNews += 1
        return
      }
      const postedOn = timeSent ? (posted.RecordedOn ?? undefined) : undefined
      learn({ posted, postedOn, shown: reply, nowMs: nowMs(), proven: false })
    },
    readBack: (posted, shown) => {
      const postedOn = posted.RecordedOn ?? undefined
      learn({ posted, postedOn, shown, nowMs: undefined, proven: true })
    },
    knowledge: (timeSent, { withConfirmed } = { withConfirmed: true }) => ({
      profile,
      timeSent,
      ...(withConfirmed && {
        isConfirmed: (externalId: string, recordedOn: string) => marks.has(externalId, recordedOn),
      }),
    }),
    profile: () => profile,
    use: (next) => {
      profile = next
    },
  }
}

/** A clock that drifts away from ours widens the skew with every answer: no reason to examine them all. */
function isWidenedSkew(next: EchoProfile, { skew }: EchoProfile): boolean {
  return next.skew !== undefined && skew !== undefined && next.skew !== skew
}
