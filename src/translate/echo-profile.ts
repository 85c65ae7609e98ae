import * as z from 'zod'

import type { V3Record, V3Reply } from '../v3/record.ts'
import { isCutComment, isSameComment, isStoredAs, parseTime } from './stored-values.ts'

/**
 * How one service changes the values of a mark when it stores them. Initially every rule may hold. A reply to a POST that differs
 * from the posted values shows the stored ones; a reply that repeats them proves nothing, since the service may still store
 * others. A mark that was read back with exactly the posted millisecond shows the stored values as well.
 */
const profileSchema = z.object({
  /** Raised when the service contradicts the profile: a profile of a higher epoch replaces one of a lower. */
  epoch: z.int(),
  /** The largest difference that was seen between a time that the service shows and that of the call, ms. */
  clockOffMs: z.int(),
  /** Replies contain comments as stored. */
  commentsShown: z.boolean(),
  /** The longest comment that is known to be stored whole, in UTF-16 code units. */
  wholeLength: z.int(),
  /** Longer comments are cut to this length; undefined: not seen. */
  cutLength: z.int().optional(),
  /** The service changes comments or minutes by an unknown rule. */
  commentsOpaque: z.boolean(),
  minutesOpaque: z.boolean(),
  /** Missing minutes are stored as missing, not as 0; and 0 as 0, not as missing. One says nothing of the other. */
  nullKept: z.boolean(),
  zeroKept: z.boolean(),
  /** The service shows minutes or comments, so that null means that it has none. */
  qualifierShown: z.boolean().default(false),
})

export type EchoProfile = Readonly<z.infer<typeof profileSchema>>

/** The profile before the first reply. */
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

/** One mark as posted, and as the service returned it. */
export interface Echo {
  readonly posted: V3Record
  /** The posted `RecordedOn`; undefined: not sent (`bodyProfile: minimal`). */
  readonly postedOn: string | undefined
  readonly shown: Pick<V3Reply, 'RecordedOn' | 'Qualifier'>
  /** The adapter's time when the reply arrived; undefined for a mark that was read back. */
  readonly nowMs: number | undefined
  /** True if the returned values are certainly the stored values of this mark. */
  readonly proven: boolean
}

/** Learns from one echo; returns the same object if there is nothing new. */
export function learnEcho(profile: EchoProfile, echo: Echo): EchoProfile {
  return learnMinutes(learnComment(learnShown(learnTime(profile, echo), echo), echo), echo)
}

function learnShown(profile: EchoProfile, { shown: { Qualifier } }: Echo): EchoProfile {
  const isShown = (Qualifier?.MinutesLate ?? Qualifier?.Comment ?? null) !== null
  return isShown && !profile.qualifierShown ? { ...profile, qualifierShown: true } : profile
}

/** A time that no rule makes of the posted one is the service's own, or in another zone. */
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
  // What was read back says nothing of replies: they may still repeat what was posted.
  const known = profile.commentsShown || proven ? profile : { ...profile, commentsShown: true }
  if (isSameComment(before, after)) return known
  if (isCutComment(before, after)) return learnCut(known, after.length)
  return known.commentsOpaque ? known : { ...known, commentsOpaque: true }
}

/** Blanks at the cut may be trimmed, so the longest observed length is the limit. */
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

/** Merges the profiles of two instances; returns the first object if the second adds nothing. */
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

/** The profile as text, without a value of a mark. */
export function formatProfile(profile: EchoProfile): string {
  return JSON.stringify(profile)
}

/** The inverse of `formatProfile`; undefined for a text that it did not write: one of another version is ignored. */
export function parseProfile(text: string): EchoProfile | undefined {
  try {
    return profileSchema.parse(JSON.parse(text))
  } catch {
    return undefined
  }
}
