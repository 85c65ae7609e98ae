import type { V3Record, V3Reply } from '../v3/record/v3-record.ts'
import { isCutComment, isSameComment } from './stored-comment.ts'
import { allTimes, fittingTimes, KEPT_TIMES, OWN_TIME, parseTime } from './stored-time.ts'

/** The lead of the service's clock, ms: the smallest and the largest observed. */
export interface Skew {
  readonly least: number
  readonly most: number
}

/**
 * How one service changes the values of a mark when it stores them. Initially every rule may hold. A reply to a POST that differs
 * from the posted values shows the stored ones; a reply that repeats them proves nothing, since the service may still store
 * others. A mark that was read back with exactly the posted millisecond shows the stored values as well.
 */
export interface EchoProfile {
  /** Raised when the service contradicts the profile: a profile of a higher epoch replaces one of a lower. */
  readonly epoch: number
  /** The rules for `RecordedOn` that may hold, bits of `stored-time.ts`. */
  readonly times: number
  /** A reply contained `RecordedOn`: a service with another clock would have shown it, unless it repeats the posted value. */
  readonly timeSeen: boolean
  readonly skew: Skew | undefined
  /** The window before the current one; both count. */
  readonly skewBefore: Skew | undefined
  /** Replies contain comments as stored. */
  readonly commentsShown: boolean
  /** The longest comment that is known to be stored whole, in UTF-16 code units. */
  readonly wholeLength: number
  /** Longer comments are cut to this length; undefined: not seen. */
  readonly cutLength: number | undefined
  /** The service changes comments or minutes by an unknown rule. */
  readonly commentsOpaque: boolean
  readonly minutesOpaque: boolean
  /** Missing minutes are stored as missing, not as 0. */
  readonly nullsKept: boolean
}

/** The profile before the first reply. */
export const freshProfile: EchoProfile = {
  epoch: 0,
  times: allTimes,
  timeSeen: false,
  skew: undefined,
  skewBefore: undefined,
  commentsShown: false,
  wholeLength: 0,
  cutLength: undefined,
  commentsOpaque: false,
  minutesOpaque: false,
  nullsKept: false,
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
  return learnMinutes(learnComment(learnTime(profile, echo), echo), echo)
}

function learnTime(profile: EchoProfile, { postedOn, shown, nowMs, proven }: Echo): EchoProfile {
  const { RecordedOn } = shown
  const shownMs = parseTime(RecordedOn)
  if (Number.isNaN(shownMs)) return profile
  const postedMs = parseTime(postedOn)
  if (Number.isNaN(postedMs)) return widenSkew(profile, shownMs, nowMs)
  const seen = profile.timeSeen ? profile : { ...profile, timeSeen: true }
  if (shownMs === postedMs) {
    // A service with its own clock stores the posted millisecond only by chance.
    if (!proven || postedMs % 1_000 === 0) return seen
    return restrictTimes(seen, fittingTimes(postedMs, shownMs, KEPT_TIMES))
  }
  const fitting = fittingTimes(postedMs, shownMs, KEPT_TIMES)
  const known = restrictTimes(seen, fitting | OWN_TIME)
  return fitting === 0 ? widenSkew(known, shownMs, nowMs) : known
}

function restrictTimes(profile: EchoProfile, fitting: number): EchoProfile {
  const times = profile.times & fitting
  if (times === profile.times) return profile
  if (times !== 0) return { ...profile, times }
  return { ...profile, epoch: profile.epoch + 1, times: fitting, skew: undefined, skewBefore: undefined }
}

function widenSkew(profile: EchoProfile, shownMs: number, nowMs: number | undefined): EchoProfile {
  if (nowMs === undefined) return profile
  const ahead = Math.round(shownMs - nowMs)
  const { skew } = profile
  if (skew !== undefined && ahead >= skew.least && ahead <= skew.most) return profile
  const { least, most } = skew ?? { least: ahead, most: ahead }
  return { ...profile, skew: { least: Math.min(least, ahead), most: Math.max(most, ahead) } }
}

/** Begins a new window for the skew; observations before the previous window are dropped. */
export function turnSkew(profile: EchoProfile): EchoProfile {
  return { ...profile, skewBefore: profile.skew, skew: undefined }
}

/** The skew over both windows; undefined: none was observed. */
export function skewOf({ skew, skewBefore }: EchoProfile): Skew | undefined {
  if (skew === undefined || skewBefore === undefined) return skew ?? skewBefore
  return {
    least: Math.min(skew.least, skewBefore.least),
    most: Math.max(skew.most, skewBefore.most),
  }
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
  const known = profile.commentsShown ? profile : { ...profile, commentsShown: true }
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
  if (before === minutes) {
    const kept = proven && before === null
    return kept && !profile.nullsKept ? { ...profile, nullsKept: true } : profile
  }
  if ((before ?? 0) === (minutes ?? 0))
    return profile.nullsKept ? { ...profile, epoch: profile.epoch + 1, nullsKept: false } : profile
  return profile.minutesOpaque ? profile : { ...profile, minutesOpaque: true }
}

/** Merges the profiles of two instances; returns the first object if the second adds nothing. */
export function joinProfiles(one: EchoProfile, other: EchoProfile): EchoProfile {
  if (one.epoch !== other.epoch) return one.epoch > other.epoch ? one : other
  const joined: EchoProfile = {
    epoch: one.epoch,
    // Contradicting rules were learned from a service that has changed: then each may hold.
    times: (one.times & other.times) === 0 ? allTimes : one.times & other.times,
    timeSeen: one.timeSeen || other.timeSeen,
    // Each instance has its own clock.
    ...(skewOf(one) === undefined
      ? { skew: other.skew, skewBefore: other.skewBefore }
      : { skew: one.skew, skewBefore: one.skewBefore }),
    commentsShown: one.commentsShown || other.commentsShown,
    wholeLength: Math.max(one.wholeLength, other.wholeLength),
    cutLength: maxOf(one.cutLength, other.cutLength),
    commentsOpaque: one.commentsOpaque || other.commentsOpaque,
    minutesOpaque: one.minutesOpaque || other.minutesOpaque,
    nullsKept: one.nullsKept || other.nullsKept,
  }
  return isSameProfile(one, joined) ? one : joined
}

function maxOf(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? (one ?? other) : Math.max(one, other)
}

/** True if both are equal. */
export function isSameProfile(one: EchoProfile, other: EchoProfile): boolean {
  return one === other || formatProfile(one) === formatProfile(other)
}

/** The profile as text, without a value of a mark. */
export function formatProfile(profile: EchoProfile): string {
  const { epoch, times, skew, skewBefore, wholeLength, cutLength } = profile
  const numbers = { epoch, times, wholeLength, cutLength: cutLength ?? null }
  const skews = [skew?.least, skew?.most, skewBefore?.least, skewBefore?.most].map((ms) => ms ?? null)
  const known = flagNames.filter((name) => profile[name])
  return JSON.stringify({ ...numbers, skews, known })
}

const flagNames = ['timeSeen', 'commentsShown', 'commentsOpaque', 'minutesOpaque', 'nullsKept'] as const

/** The inverse of `formatProfile`; undefined for a text that it did not write. */
export function parseProfile(text: string): EchoProfile | undefined {
  const value = parseObject(text)
  if (value === undefined) return undefined
  const number = (name: string): number | undefined => toInteger(value[name])
  const [epoch, times, wholeLength] = [number('epoch'), number('times'), number('wholeLength')]
  const { skews, known } = value
  if (epoch === undefined || times === undefined || wholeLength === undefined) return undefined
  if (!Array.isArray(skews) || !Array.isArray(known)) return undefined
  const [least, most, leastBefore, mostBefore] = skews.map(toInteger)
  const flag = (name: (typeof flagNames)[number]): boolean => known.includes(name)
  return {
    epoch,
    times: (times & allTimes) === 0 ? allTimes : times & allTimes,
    timeSeen: flag('timeSeen'),
    skew: toSkew(least, most),
    skewBefore: toSkew(leastBefore, mostBefore),
    commentsShown: flag('commentsShown'),
    wholeLength,
    cutLength: number('cutLength'),
    commentsOpaque: flag('commentsOpaque'),
    minutesOpaque: flag('minutesOpaque'),
    nullsKept: flag('nullsKept'),
  }
}

function parseObject(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? { ...value } : undefined
  } catch {
    // A text of another version is ignored.
    return undefined
  }
}

function toInteger(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isInteger(value) ? value : undefined
}

function toSkew(least: number | undefined, most: number | undefined): Skew | undefined {
  return least === undefined || most === undefined ? undefined : { least, most }
}
