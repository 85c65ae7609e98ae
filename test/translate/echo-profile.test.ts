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

/** An echo of a mark; `own` has the posted values and what else differs. */
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
    ['no other clock from a time cut to seconds', [time('2026-06-10T10:00:31Z')], {}],
    ['no other clock from a time rounded by SQL', [time('2026-06-10T10:00:31.253Z')], {}],
    ['no other clock from a time cut to minutes', [time('2026-06-10T10:00:00Z')], {}],
    ['no other clock from a time rounded to minutes', [time('2026-06-10T10:01:00Z')], {}],
    ['no clock from a time that is none', [time('yesterday')], {}],
    ['no clock from a mark that was read back', [time('2026-06-10T09:00:31.290Z', { nowMs: undefined })], {}],
    ['how far the clock is off', [behind], { clockOffMs: 3_600_010 }],
    ['how far the clock is off at most', [behind, time('2026-06-10T10:00:40.300Z')], { clockOffMs: 3_600_010 }],
    ['how far the clock is off, ahead or behind', [behind, time('2026-06-10T12:00:31.300Z')], { clockOffMs: 7_200_000 }],
    ['that from marks posted without a time', [time('2026-06-10T10:00:32.300Z', { postedOn: undefined })], { clockOffMs: 1_000 }],
    ['nothing from no qualifier', [echo({ Qualifier: null })], {}],
    ['nothing from no values', [echo({})], {}],
    ['nothing from an empty comment shown as none', [comment('', null)], {}],
    ['that a comment was stored whole', [whole], { wholeLength: 30, nullKept: true }],
    ['where comments are cut', [cut], { commentsShown: true, cutLength: 7 }],
    ['the longest cut', [cut, comment('abcdefghijkl', 'abcdefgh')], { commentsShown: true, cutLength: 8 }],
    ['nothing from a shorter cut', [cut, comment('abcdefgh ijkl', 'abcd')], { commentsShown: true, cutLength: 7 }],
    ['that short comments are stored whole', [cut, comment('short', 'short')], { commentsShown: true, cutLength: 7, wholeLength: 5 }],
    ['no cut from trimmed blanks', [comment(' a\r\n', 'a')], { commentsShown: true }],
    ['where comments are cut from a mark that was read back', [readCut], { cutLength: 7, nullKept: true }],
    ['nothing more from a reply that repeats a longer comment', [readCut, comment('one two three', 'one two three')], { cutLength: 7, nullKept: true }],
    ['that an unknown rule changes comments', [comment('a & b', 'a &amp; b')], { commentsShown: true, commentsOpaque: true }],
    ['that an unknown rule changes minutes', [minutes(7, 5)], { minutesOpaque: true }],
    ['nothing from missing minutes that an answer repeats', [minutes(null, null)], {}],
    ['nothing from missing minutes shown as 0', [minutes(null, 0)], {}],
    ['that missing minutes are kept', [minutes(null, null, true)], { nullKept: true }],
    ['that 0 minutes are kept, which says nothing of missing ones', [minutes(0, 0, true)], { zeroKept: true }],
    ['that missing minutes are kept where 0 becomes missing', [minutes(null, null, true), minutes(0, null, true)], { nullKept: true }],
    ['anew where a whole comment is cut', [whole, comment('x'.repeat(30), 'x'.repeat(20))], { epoch: 1, commentsShown: true, cutLength: 20, nullKept: true }],
    ['anew where a longer comment is stored whole', [cut, comment('one two three', 'one two three')], { epoch: 1, commentsShown: true, wholeLength: 13 }],
    ['anew where missing minutes become 0', [minutes(null, null, true), minutes(null, 0, true)], { epoch: 1 }],
  ])('learns %s, and the same again changes nothing', (_what, echoes, learned) => {
    const profile = learn(...echoes)
    expect(profile).toEqual({ ...freshProfile, qualifierShown: profile.qualifierShown, ...learned })
    expect(echoes.slice(-1).reduce(learnEcho, profile)).toBe(profile)
  }) // prettier-ignore

  it.each<[what: string, shown: Echo, isShown: boolean]>([
    ['a comment', comment('x', 'x'), true],
    ['minutes', minutes(0, 0), true],
    ['nulls', minutes(5, null), false],
    ['no qualifier', echo({ Qualifier: null }), false],
    ['no values', echo({}), false],
  ])('learns whether the service shows minutes and comments: %s', (_what, shown, isShown) => {
    expect(learn(shown).qualifierShown).toBe(isShown)
  })
})

describe('a profile of several instances', () => {
  const [own, other] = [learn(behind), learn(cut)]

  it('holds what each of them learned', () => {
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

  it('survives its text', () => {
    for (const profile of [freshProfile, own, other])
      expect(parseProfile(formatProfile(profile))).toEqual(profile)
  })

  it.each(['', '5', 'null', '[]', '{}', '{"epoch":0,"clockOffMs":1,"wholeLength":0,"known":[]}'])(
    'is not read from %j',
    (text) => {
      expect(parseProfile(text)).toBeUndefined()
    },
  )
})
