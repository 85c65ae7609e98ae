import * as z from 'zod'

import type { V3Record, V3Reply } from '../v3/record.ts'
import { isCutComment, isSameComment, isStoredAs, parseTime } from './stored-values.ts'

/**
 * The schema of an echo profile, which describes how one service changes the values of a mark when it stores them. A new profile allows
 * every change. The adapter learns from a reply to a POST whose values differ from the posted values, because such a reply shows the stored
 * values. A reply that repeats the posted values proves nothing, because the service may store other values. A mark that was read back with
 * exactly the posted millisecond also shows the stored values.
 */
const profileSchema = z.object({
  /** Incremented when the service contradicts the profile. Of two profiles, the one with the higher epoch is valid. */
  epoch: z.int(),
  /** The largest observed difference in ms between a `RecordedOn` of the service and the adapter's time at its reply. */
  clockOffMs: z.int(),
  /** True if replies to POSTs show the stored comments and do not repeat the posted ones. */
  commentsShown: z.boolean(),
  /** The length of the longest comment that is known to be stored whole, in UTF-16 code units. */
  wholeLength: z.int(),
  /** The length to which the service cuts longer comments, or `undefined` if no cut was observed. */
  cutLength: z.int().optional(),
  /** `commentsOpaque` and `minutesOpaque` are true if the service changes comments or minutes by an unknown rule. */
  commentsOpaque: z.boolean(),
  minutesOpaque: z.boolean(),
  /** `nullKept` is true if missing minutes are stored as missing, not as 0. `zeroKept` is true if 0 is stored as 0, not as missing. */
  nullKept: z.boolean(),
  zeroKept: z.boolean(),
  /** True if the service shows minutes or comments that it stores. A null then means that nothing is stored. */
  qualifierShown: z.boolean().default(false),
})

export type EchoProfile = Readonly<z.infer<typeof profileSchema>>

export const freshProfile: EchoProfile = {
  epoch: 0,
  clockOffMs: 0,
  commentsShown: false,
  wholeLength: 0,
  cutLength: undefined,
  commentsOpaque: false,
  minutesOpaque: false,
  nullKept: false,
  zeroKept: false,
  qualifierShown: false,
}

export interface Echo {
  readonly posted: V3Record
  /** The posted `RecordedOn`, or `undefined` if it was not sent (`bodyProfile: minimal`). */
  readonly postedOn: string | undefined
  readonly shown: Pick<V3Reply, 'RecordedOn' | 'Qualifier'>
  /** The adapter's time in ms at which the reply arrived, or `undefined` for a mark that was read back. */
  readonly nowMs: number | undefined
  /** True if `shown` certainly contains the stored values of the posted mark. */
  readonly proven: boolean
}

/** Adds the knowledge from one echo to a profile. Returns the same object if the echo shows nothing new. */
export function learnEcho(profile: EchoProfile, echo: Echo): EchoProfile {
  return learnMinutes(learnComment(learnShown(learnTime(profile, echo), echo), echo), echo)
}

function learnShown(profile: EchoProfile, { shown: { Qualifier } }: Echo): EchoProfile {
  const isShown = (Qualifier?.MinutesLate ?? Qualifier?.Comment ?? null) !== null
  return isShown && !profile.qualifierShown ? { ...profile, qualifierShown: true } : profile
}

/**
 * Learns the clock difference. If rounding the posted time cannot give the shown time, the service either stored a time of its own clock or
 * moved the posted time to another time zone.
 */
function learnTime(profile: EchoProfile, { postedOn, shown, nowMs }: Echo): EchoProfile {
  if (shown.RecordedOn === postedOn) return profile
  const shownMs = parseTime(shown.RecordedOn)
  if (nowMs === undefined || Number.isNaN(shownMs) || isStoredAs(parseTime(postedOn), shownMs)) return profile
  const clockOffMs = Math.round(Math.abs(shownMs - nowMs))
  return clockOffMs <= profile.clockOffMs ? profile : { ...profile, clockOffMs }
}

function learnComment(profile: EchoProfile, { posted, shown, proven }: Echo): EchoProfile {
  const text = shown.Qualifier === null ? null : shown.Qualifier?.Comment
  if (text === undefined) return profile
  const [before, after] = [posted.Qualifier.Comment ?? '', text ?? '']
  if (before === after) {
    if (!(proven || profile.commentsShown) || before.length <= profile.wholeLength) return profile
    const { cutLength, epoch } = profile
    if (cutLength === undefined || cutLength >= before.length)
      return { ...profile, wholeLength: before.length }
    return { ...profile, epoch: epoch + 1, wholeLength: before.length, cutLength: undefined }
  }
  // Learns `commentsShown` only from replies to POSTs. A read-back does not tell whether these replies show the stored comments.
  const known = profile.commentsShown || proven ? profile : { ...profile, commentsShown: true }
  if (isSameComment(before, after)) return known
  if (isCutComment(before, after)) return learnCut(known, after.length)
  return known.commentsOpaque ? known : { ...known, commentsOpaque: true }
}

/** Learns the length at which comments are cut. The service may trim spaces at the cut, so the longest observed length is the limit. */
function learnCut(profile: EchoProfile, length: number): EchoProfile {
  const { cutLength = 0, wholeLength, epoch } = profile
  if (length < wholeLength) return { ...profile, epoch: epoch + 1, wholeLength: 0, cutLength: length }
  return length <= cutLength ? profile : { ...profile, cutLength: length }
}

function learnMinutes(profile: EchoProfile, { posted, shown, proven }: Echo): EchoProfile {
  const minutes = shown.Qualifier === null ? null : shown.Qualifier?.MinutesLate
  if (minutes === undefined) return profile
  const before = posted.Qualifier.MinutesLate ?? null
  const name = before === null ? 'nullKept' : 'zeroKept'
  if (before === minutes) {
    const isKept = proven && (before ?? 0) === 0
    return isKept && !profile[name] ? { ...profile, [name]: true } : profile
  }
  if ((before ?? 0) === (minutes ?? 0))
    return profile[name] ? { ...profile, epoch: profile.epoch + 1, [name]: false } : profile
  return profile.minutesOpaque ? profile : { ...profile, minutesOpaque: true }
}

/** Merges the profiles of two instances. Returns the first object if the second profile adds nothing. */
export function joinProfiles(one: EchoProfile, other: EchoProfile): EchoProfile {
  if (one.epoch !== other.epoch) return one.epoch > other.epoch ? one : other
  const joined: EchoProfile = {
    epoch: one.epoch,
    clockOffMs: Math.max(one.clockOffMs, other.clockOffMs),
    commentsShown: one.commentsShown || other.commentsShown,
    wholeLength: Math.max(one.wholeLength, other.wholeLength),
    cutLength: maxOf(one.cutLength, other.cutLength),
    commentsOpaque: one.commentsOpaque || other.commentsOpaque,
    minutesOpaque: one.minutesOpaque || other.minutesOpaque,
    nullKept: one.nullKept || other.nullKept,
    zeroKept: one.zeroKept || other.zeroKept,
    qualifierShown: one.qualifierShown || other.qualifierShown,
  }
  return formatProfile(one) === formatProfile(joined) ? one : joined
}

function maxOf(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? (one ?? other) : Math.max(one, other)
}

export function formatProfile(profile: EchoProfile): string {
  return JSON.stringify(profile)
}

/** Parses a profile. Returns `undefined` for text in another form, for example from another version. */
export function parseProfile(text: string): EchoProfile | undefined {
  try {
    return profileSchema.parse(JSON.parse(text))
  } catch {
    return undefined
  }
}
