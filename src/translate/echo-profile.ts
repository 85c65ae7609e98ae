import type { V3Record, V3Reply } from '../v3/record/v3-record.ts'
import { isCutComment, isSameComment } from './stored-comment.ts'
import { allTimes, fittingTimes, KEPT_TIMES, OWN_TIME, parseTime } from './stored-time.ts'

/** How far the service's time is ahead, ms: the least and the most that was seen. */
export interface Skew {
  readonly least: number
  readonly most: number
}

/**
 * What is known of what one service makes of the values of a mark. As long as nothing was learned, every rule may hold. An
 * answer to a POST that differs from what was posted shows what is stored; one that merely repeats it proves nothing, since
 * a service may repeat the posted values and store others. What is stored is also known from a mark that was read back and
 * carries the very millisecond that was posted.
 */
export interface EchoProfile {
  /** Raised when the service contradicts what was learned: the knowledge of a higher epoch replaces that of a lower one. */
  readonly epoch: number
  /** The rules for `RecordedOn` that may hold, bits of `stored-time.ts`. */
  readonly times: number
  /** An answer showed `RecordedOn`: a service with another clock would have shown it, unless it repeats what was posted. */
  readonly timeSeen: boolean
  readonly skew: Skew | undefined
  /** The window before the current one; both count. */
  readonly skewBefore: Skew | undefined
  /** Answers show comments as they are stored. */
  readonly commentsShown: boolean
  /** The longest comment that is known to be stored whole, in UTF-16 code units. */
  readonly wholeLength: number
  /** Longer comments are cut to this length; undefined: not seen. */
  readonly cutLength: number | undefined
  /** Comments or minutes are changed by a rule that nobody here knows. */
  readonly commentsOpaque: boolean
  readonly minutesOpaque: boolean
  /** Missing minutes are stored as such, not as 0. */
  readonly nullsKept: boolean
}

/** Nothing was learned. */
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

/** One mark as it was posted and as the service shows it. */
export interface Echo {
  readonly posted: V3Record
  /** `RecordedOn` as it was posted; undefined: it was not sent (`bodyProfile: minimal`). */
  readonly postedOn: string | undefined
  readonly shown: Pick<V3Reply, 'RecordedOn' | 'Qualifier'>
  /** The time of the adapter when the answer came; undefined for a mark that was read back. */
  readonly nowMs: number | undefined
  /** It is certain that what is shown is what is stored for this very mark. */
  readonly proven: boolean
}

/** Learns from one echo; the same object when it shows nothing new. */
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
    // A service of its own clock meets a millisecond only by chance.
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

/** Begins a new window for the skew: what was seen before the one that ends no longer counts. */
export function turnSkew(profile: EchoProfile): EchoProfile {
  return { ...profile, skewBefore: profile.skew, skew: undefined }
}

/** The skew over both windows; undefined: none was seen. */
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

/** Blanks at the cut may be trimmed: the longest that was seen counts. */
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

/** Joins what two instances learned of one service; the first object when the second adds nothing. */
export function joinProfiles(one: EchoProfile, other: EchoProfile): EchoProfile {
  if (one.epoch !== other.epoch) return one.epoch > other.epoch ? one : other
  const joined: EchoProfile = {
    epoch: one.epoch,
    // Rules that exclude each other were learned of a service that changed: then each may hold.
    times: (one.times & other.times) === 0 ? allTimes : one.times & other.times,
    timeSeen: one.timeSeen || other.timeSeen,
    // Each instance has a clock of its own.
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

/** True when both say the same. */
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
    // A text that another version wrote teaches nothing.
    return undefined
  }
}

function toInteger(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isInteger(value) ? value : undefined
}

function toSkew(least: number | undefined, most: number | undefined): Skew | undefined {
  return least === undefined || most === undefined ? undefined : { least, most }
}
