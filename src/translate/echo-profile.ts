import type { V3Record, V3Reply } from '../v3/record.ts'
import { isCutComment, isSameComment, isStoredAs, parseTime } from './stored-values.ts'

/**
 * How one service changes the values of a mark when it stores them. Initially every rule may hold. A reply to a POST that differs
 * from the posted values shows the stored ones; a reply that repeats them proves nothing, since the service may still store
 * others. A mark that was read back with exactly the posted millisecond shows the stored values as well.
 */
export interface EchoProfile {
  /** Raised when the service contradicts the profile: a profile of a higher epoch replaces one of a lower. */
  readonly epoch: number
  /** The largest difference that was seen between a time that the service shows and that of the call, ms. */
  readonly clockOffMs: number
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
  clockOffMs: 0,
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
    clockOffMs: Math.max(one.clockOffMs, other.clockOffMs),
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
function isSameProfile(one: EchoProfile, other: EchoProfile): boolean {
  return one === other || formatProfile(one) === formatProfile(other)
}

/** The profile as text, without a value of a mark. */
export function formatProfile(profile: EchoProfile): string {
  const { epoch, clockOffMs, wholeLength, cutLength } = profile
  const known = flagNames.filter((name) => profile[name])
  return JSON.stringify({ epoch, clockOffMs, wholeLength, cutLength: cutLength ?? null, known })
}

const flagNames = ['commentsShown', 'commentsOpaque', 'minutesOpaque', 'nullsKept'] as const

/** The inverse of `formatProfile`; undefined for a text that it did not write. */
export function parseProfile(text: string): EchoProfile | undefined {
  const value = parseObject(text)
  if (value === undefined) return undefined
  const number = (name: string): number | undefined => toInteger(value[name])
  const [epoch, clockOffMs, wholeLength] = [number('epoch'), number('clockOffMs'), number('wholeLength')]
  const { known } = value
  if (epoch === undefined || clockOffMs === undefined || wholeLength === undefined) return undefined
  if (!Array.isArray(known)) return undefined
  const flag = (name: (typeof flagNames)[number]): boolean => known.includes(name)
  return {
    epoch,
    clockOffMs,
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
