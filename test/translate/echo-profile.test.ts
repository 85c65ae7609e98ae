import { describe, expect, it } from 'vitest'

import {
  type EchoProfile,
  formatProfile,
  freshProfile,
  joinProfiles,
  learnEcho,
  parseProfile,
} from '../../src/translate/echo-profile.ts'
import { nestedRecord } from '../writes/planned-record.ts'

const postedOn = '2026-06-10T10:00:31.254Z'
const nowMs = Date.parse('2026-06-10T10:00:31.300Z')
const record = { ...nestedRecord(1), RecordedOn: postedOn }
const withComment = (Comment: string | null, MinutesLate: number | null = null) => ({
  ...record,
  Qualifier: { MinutesLate, Comment },
})

const seeTime = (profile: EchoProfile, RecordedOn: string): EchoProfile =>
  learnEcho(profile, { posted: record, postedOn, shown: { RecordedOn }, nowMs, proven: false })
const seeComment = (
  profile: EchoProfile,
  before: string,
  after: string | null,
  proven = false,
): EchoProfile =>
  learnEcho(profile, {
    posted: withComment(before),
    postedOn,
    shown: { Qualifier: { MinutesLate: null, Comment: after } },
    nowMs,
    proven,
  })

describe('learnEcho', () => {
  it('learns nothing about what is stored from an answer that repeats what was posted', () => {
    expect(seeTime(freshProfile, postedOn)).toBe(freshProfile)
    expect(seeComment(freshProfile, 'a comment', 'a comment')).toBe(freshProfile)
  })

  it.each([
    ['cut to seconds', '2026-06-10T10:00:31Z'],
    ['rounded by SQL', '2026-06-10T10:00:31.253Z'],
    ['cut to minutes', '2026-06-10T10:00:00Z'],
    ['rounded to minutes', '2026-06-10T10:01:00Z'],
  ])('a time that was %s shows no other clock', (_how, shown) => {
    expect(seeTime(freshProfile, shown)).toBe(freshProfile)
  })

  it('learns how far the clock of the service is off at most, ahead or behind', () => {
    const behind = seeTime(freshProfile, '2026-06-10T09:00:31.290Z')
    expect(behind).toEqual({ ...freshProfile, clockOffMs: 3_600_010 })
    expect(seeTime(behind, '2026-06-10T10:00:40.300Z')).toBe(behind)
    expect(seeTime(behind, '2026-06-10T12:00:31.300Z')).toMatchObject({ clockOffMs: 7_200_000 })
  })

  it('learns that from marks that were posted without a time', () => {
    const shown = { RecordedOn: '2026-06-10T10:00:32.300Z' }
    const sample = { posted: record, postedOn: undefined, shown, nowMs, proven: false }
    expect(learnEcho(freshProfile, sample)).toEqual({ ...freshProfile, clockOffMs: 1_000 })
  })

  it('begins anew where the service contradicts what was learned', () => {
    const whole = seeComment(freshProfile, 'x'.repeat(30), 'x'.repeat(30), true)
    expect(whole).toMatchObject({ wholeLength: 30 })
    expect(seeComment(whole, 'x'.repeat(30), 'x'.repeat(20))).toMatchObject({ epoch: 1, cutLength: 20 })
  })

  it('learns where comments are cut, and that they are changed by an unknown rule', () => {
    const once = seeComment(freshProfile, 'one two three four', 'one two')
    expect(once).toMatchObject({ commentsShown: true, cutLength: 7 })
    expect(seeComment(once, 'abcdefghijkl', 'abcdefgh')).toMatchObject({ cutLength: 8 })
    expect(seeComment(freshProfile, 'a & b', 'a &amp; b')).toMatchObject({ commentsOpaque: true })
    expect(seeComment(freshProfile, ' a\r\n', 'a')).toMatchObject({
      commentsOpaque: false,
      cutLength: undefined,
    })
  })

  it('learns what becomes of missing minutes', () => {
    const see = (posted: number | null, stored: number | null, proven: boolean): EchoProfile =>
      learnEcho(freshProfile, {
        posted: withComment(null, posted),
        postedOn,
        shown: { Qualifier: { MinutesLate: stored, Comment: null } },
        nowMs,
        proven,
      })
    expect(see(null, null, false)).toBe(freshProfile)
    expect(see(null, null, true)).toMatchObject({ nullsKept: true })
    expect(see(null, 0, false)).toBe(freshProfile)
    expect(see(7, 5, false)).toMatchObject({ minutesOpaque: true })
  })
})

describe('learnEcho, of what an answer leaves out or takes back', () => {
  const bare = (shown: object, posted = record): EchoProfile =>
    learnEcho(freshProfile, { posted, postedOn, shown, nowMs: undefined, proven: false })

  it.each([
    ['no qualifier', { Qualifier: null }],
    ['no time and no values', {}],
    ['a time that is none', { RecordedOn: 'yesterday' }],
  ])('learns nothing from %s', (_what, shown) => {
    expect(bare(shown)).toBe(freshProfile)
  })

  it('learns no clock from a mark that was read back', () => {
    expect(bare({ RecordedOn: '2026-06-10T09:00:31.290Z' })).toBe(freshProfile)
  })

  it('keeps the length of a cut until a longer comment is stored whole', () => {
    const cut = seeComment(freshProfile, 'one two three four', 'one two')
    expect(seeComment(cut, 'short', 'short')).toMatchObject({ epoch: 0, cutLength: 7, wholeLength: 5 })
    expect(seeComment(cut, 'abcdefgh ijkl', 'abcd')).toMatchObject({ cutLength: 7 })
    expect(seeComment(cut, 'one two three', 'one two three')).toMatchObject({
      epoch: 1,
      cutLength: undefined,
    })
  })

  it('counts an empty comment and none as one', () => {
    expect(seeComment(freshProfile, '', null)).toBe(freshProfile)
  })

  it('says once that values are changed by an unknown rule', () => {
    const opaque = seeComment(freshProfile, 'a & b', 'a &amp; b')
    expect(seeComment(opaque, 'c & d', 'c &amp; d')).toBe(opaque)
    const minutes = (profile: EchoProfile): EchoProfile =>
      learnEcho(profile, {
        posted: withComment(null, 7),
        postedOn,
        shown: { Qualifier: { MinutesLate: 5 } },
        nowMs,
        proven: false,
      })
    expect(minutes(minutes(freshProfile))).toEqual({ ...freshProfile, minutesOpaque: true })
  })

  it('takes back that missing minutes are kept', () => {
    const see = (profile: EchoProfile, stored: number | null): EchoProfile =>
      learnEcho(profile, {
        posted: withComment(null),
        postedOn,
        shown: { Qualifier: { MinutesLate: stored } },
        nowMs,
        proven: true,
      })
    const kept = see(freshProfile, null)
    expect(see(kept, null)).toBe(kept)
    expect(see(kept, 0)).toMatchObject({ epoch: 1, nullsKept: false })
  })
})

describe('a profile of several instances', () => {
  const own = seeTime(freshProfile, '2026-06-10T09:00:31.290Z')
  const cut = seeComment(freshProfile, 'one two three four', 'one two')

  it('holds what each of them learned', () => {
    const joined = joinProfiles(own, cut)
    expect(joined).toMatchObject({ cutLength: 7, clockOffMs: 3_600_010 })
    expect(joinProfiles(joined, own)).toBe(joined)
    expect(joinProfiles({ ...freshProfile, epoch: 1 }, own)).toEqual({ ...freshProfile, epoch: 1 })
    expect(joinProfiles(own, { ...freshProfile, epoch: 1 })).toEqual({ ...freshProfile, epoch: 1 })
    expect(joinProfiles(cut, { ...cut, cutLength: 9 })).toMatchObject({ cutLength: 9 })
  })

  it('survives its text', () => {
    for (const profile of [freshProfile, own, cut])
      expect(parseProfile(formatProfile(profile))).toEqual(profile)
    for (const text of [
      '',
      '5',
      'null',
      '[]',
      '{}',
      '{"epoch":0.5,"clockOffMs":1,"wholeLength":0,"known":[]}',
      '{"epoch":0,"wholeLength":0,"known":[]}',
      '{"epoch":0,"clockOffMs":1,"wholeLength":0}',
    ])
      expect(parseProfile(text)).toBeUndefined()
  })
})
