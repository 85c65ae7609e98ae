import { describe, expect, it } from 'vitest'

import {
  type Echo,
  type EchoProfile,
  formatProfile,
  freshProfile,
  joinProfiles,
  learnEcho,
  parseProfile,
} from '../../src/translate/echo-profile.ts'
import { nestedRecord } from '../writes/planned-record.ts'

const postedOn = '2026-06-10T10:00:31.254Z'

/** Returns what the service shows for a posted mark. `Comment` and `MinutesLate` are the posted values. `own` replaces other properties. */
function echo(
  shown: Echo['shown'],
  {
    Comment = null,
    MinutesLate = null,
    ...own
  }: Partial<Echo> & { readonly Comment?: string | null; readonly MinutesLate?: number | null } = {},
): Echo {
  const posted = { ...nestedRecord(1), RecordedOn: postedOn, Qualifier: { Comment, MinutesLate } }
  return { posted, postedOn, shown, nowMs: Date.parse('2026-06-10T10:00:31.300Z'), proven: false, ...own }
}
const time = (RecordedOn: string, own: Partial<Echo> = {}): Echo => echo({ RecordedOn }, own)
const comment = (before: string, after: string | null, proven = false): Echo =>
  echo({ Qualifier: { MinutesLate: null, Comment: after } }, { Comment: before, proven })
const minutes = (before: number | null, after: number | null, proven = false): Echo =>
  echo({ Qualifier: { MinutesLate: after, Comment: null } }, { MinutesLate: before, proven })
const learn = (...echoes: readonly Echo[]): EchoProfile => echoes.reduce(learnEcho, freshProfile)

const cut = comment('one two three four', 'one two')
const readCut = comment('one two three four', 'one two', true)
const behind = time('2026-06-10T09:00:31.290Z')
const whole = comment('x'.repeat(30), 'x'.repeat(30), true)

describe('learnEcho', () => {
  it.each<[what: string, echoes: readonly Echo[], learned: Partial<EchoProfile>]>([
    ['nothing from the posted time', [time(postedOn)], {}],
    ['nothing from the posted comment', [comment('a comment', 'a comment')], {}],
    ['no clock difference from a time that is cut to seconds', [time('2026-06-10T10:00:31Z')], {}],
    ['no clock difference from a time that SQL rounded', [time('2026-06-10T10:00:31.253Z')], {}],
    ['no clock difference from a time that is cut to minutes', [time('2026-06-10T10:00:00Z')], {}],
    ['no clock difference from a time that is rounded to minutes', [time('2026-06-10T10:01:00Z')], {}],
    ['no clock difference from an invalid time', [time('yesterday')], {}],
    ['no clock difference from a mark that was read back', [time('2026-06-10T09:00:31.290Z', { nowMs: undefined })], {}],
    ['the clock difference', [behind], { clockOffMs: 3_600_010 }],
    ['the largest clock difference of two marks', [behind, time('2026-06-10T10:00:40.300Z')], { clockOffMs: 3_600_010 }],
    ['the largest clock difference whether the clock is ahead or behind', [behind, time('2026-06-10T12:00:31.300Z')], { clockOffMs: 7_200_000 }],
    ['the clock difference from a mark that was posted without a time', [time('2026-06-10T10:00:32.300Z', { postedOn: undefined })], { clockOffMs: 1_000 }],
    ['nothing from a null qualifier', [echo({ Qualifier: null })], {}],
    ['nothing from missing values', [echo({})], {}],
    ['nothing from an empty comment that is shown as null', [comment('', null)], {}],
    ['that a comment was stored whole', [whole], { wholeLength: 30, nullKept: true }],
    ['the length at which comments are cut', [cut], { commentsShown: true, cutLength: 7 }],
    ['the longest cut', [cut, comment('abcdefghijkl', 'abcdefgh')], { commentsShown: true, cutLength: 8 }],
    ['nothing from a shorter cut', [cut, comment('abcdefgh ijkl', 'abcd')], { commentsShown: true, cutLength: 7 }],
    ['that short comments are stored whole', [cut, comment('short', 'short')], { commentsShown: true, cutLength: 7, wholeLength: 5 }],
    ['no cut length from trimmed white space', [comment(' a\r\n', 'a')], { commentsShown: true }],
    ['the length at which comments are cut from a mark that was read back', [readCut], { cutLength: 7, nullKept: true }],
    ['nothing more from a reply that repeats a longer comment', [readCut, comment('one two three', 'one two three')], { cutLength: 7, nullKept: true }],
    ['that an unknown rule changes comments', [comment('a & b', 'a &amp; b')], { commentsShown: true, commentsOpaque: true }],
    ['that an unknown rule changes minutes', [minutes(7, 5)], { minutesOpaque: true }],
    ['nothing from missing minutes that a reply repeats', [minutes(null, null)], {}],
    ['nothing from missing minutes shown as 0', [minutes(null, 0)], {}],
    ['that missing minutes are kept', [minutes(null, null, true)], { nullKept: true }],
    ['that 0 minutes are kept, and nothing about missing ones', [minutes(0, 0, true)], { zeroKept: true }],
    ['that missing minutes are kept although 0 becomes missing', [minutes(null, null, true), minutes(0, null, true)], { nullKept: true }],
    ['a new epoch if a comment of a length once stored whole is cut', [whole, comment('x'.repeat(30), 'x'.repeat(20))], { epoch: 1, commentsShown: true, cutLength: 20, nullKept: true }],
    ['a new epoch if a comment beyond the cut length is stored whole', [cut, comment('one two three', 'one two three')], { epoch: 1, commentsShown: true, wholeLength: 13 }],
    ['a new epoch if missing minutes become 0 after they were kept', [minutes(null, null, true), minutes(null, 0, true)], { epoch: 1 }],
  ])('learns %s, and learns nothing more from a repetition of the last mark', (_what, echoes, learned) => {
    const profile = learn(...echoes)
    expect(profile).toEqual({ ...freshProfile, qualifierShown: profile.qualifierShown, ...learned })
    expect(echoes.slice(-1).reduce(learnEcho, profile)).toBe(profile)
  }) // prettier-ignore

  it.each<[what: string, shown: Echo, isShown: boolean]>([
    ['a comment', comment('x', 'x'), true],
    ['minutes', minutes(0, 0), true],
    ['a qualifier of nulls', minutes(5, null), false],
    ['a null qualifier', echo({ Qualifier: null }), false],
    ['missing values', echo({}), false],
  ])(
    'learns whether the service shows minutes and comments, from a reply with %s',
    (_what, shown, isShown) => {
      expect(learn(shown).qualifierShown).toBe(isShown)
    },
  )
})

describe('joinProfiles, formatProfile and parseProfile', () => {
  const [own, other] = [learn(behind), learn(cut)]

  it('joinProfiles returns one profile with the observations of several instances', () => {
    const joined = joinProfiles(own, other)
    expect(joined).toEqual({
      ...freshProfile,
      commentsShown: true,
      cutLength: 7,
      qualifierShown: true,
      clockOffMs: 3_600_010,
    })
    expect(joinProfiles(joined, own)).toBe(joined)
    const newer = { ...freshProfile, epoch: 1 }
    expect([joinProfiles(newer, own), joinProfiles(own, newer)]).toEqual([newer, newer])
    expect(joinProfiles(other, { ...other, cutLength: 9 })).toMatchObject({ cutLength: 9 })
  })

  it('parseProfile returns the profile whose text formatProfile wrote', () => {
    for (const profile of [freshProfile, own, other])
      expect(parseProfile(formatProfile(profile))).toEqual(profile)
  })

  it.each(['', '5', 'null', '[]', '{}', '{"epoch":0,"clockOffMs":1,"wholeLength":0,"known":[]}'])(
    'parseProfile returns undefined for %j',
    (text) => {
      expect(parseProfile(text)).toBeUndefined()
    },
  )
})
