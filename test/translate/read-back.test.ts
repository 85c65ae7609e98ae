import { describe, expect, it } from 'vitest'

import { compareReadBack, toReadBackFilter } from '../../src/translate/index.ts'
import { freshProfile } from '../../src/translate/echo-profile.ts'
import { OWN_TIME } from '../../src/translate/stored-time.ts'
import { guid } from '../support/batch-request.ts'
import { nestedRecord } from '../writes/planned-record.ts'

const posted = nestedRecord(1)
/** The row that V3 has once the record was applied. */
const row = { ...posted, ExternalID: guid(77), RecordedBy: { ExternalID: guid(5), Type: 'User' } }
const earlier = '2026-06-10T09:59:59Z'
const later = '2026-06-10T10:00:01Z'
const cut = { Qualifier: { ...posted.Qualifier, Comment: 'a long' } }
const otherCode = { AttendanceCode: { ExternalID: guid(801) } }

describe('compareReadBack', () => {
  it.each([
    ['the mark itself', [row], 'applied'],
    ['the mark with a time of the service', [{ ...row, RecordedOn: later }], 'applied'],
    ['the mark without a time', [{ ...row, RecordedOn: null }], 'applied'],
    ['the mark of a service that sets the booleans itself', [{ ...row, Present: false }], 'applied'],
    ['the mark beside another', [{ ...row, ...otherCode }, row], 'applied'],
    ['an equal mark that may be stamped by a clock behind', [{ ...row, RecordedOn: earlier }], 'applied'],
    ['the mark under an older one', [row, { ...row, ...otherCode, RecordedOn: earlier }], 'applied'],
    ['the mark below a newer one', [row, { ...row, ...otherCode, RecordedOn: later }], 'overwritten'],
    ['another code from before', [{ ...row, ...otherCode, RecordedOn: earlier }], 'absent'],
    ['other minutes', [{ ...row, Qualifier: { MinutesLate: 5 }, RecordedOn: earlier }], 'absent'],
    ['another comment', [{ ...row, Qualifier: { Comment: 'x' }, RecordedOn: earlier }], 'absent'],
    ['no mark for the session', [{ ...row, AttendanceCode: null }], 'absent'],
    ['nothing', [], 'absent'],
    ['the same mark of another learner', [{ ...row, Attendee: { ExternalID: guid(2) } }], 'absent'],
    ['a newer mark of somebody else', [{ ...row, ...otherCode, RecordedOn: later }], 'overwritten'],
    ['a row that is none', ['x'], 'unclear'],
  ])('tells %s', (_what, value, kind) => {
    expect(compareReadBack(posted, { value }).kind).toBe(kind)
  })

  it.each([[undefined], [null], [{}], [{ value: 1 }], ['text']])('cannot read %j', (answer) => {
    expect(compareReadBack(posted, answer)).toEqual({ kind: 'unclear' })
  })

  it("gives the service's own id and times", () => {
    expect(compareReadBack(posted, { value: [row] })).toEqual({
      kind: 'applied',
      certain: true,
      proof: undefined,
      reply: {
        ExternalID: guid(77),
        Present: true,
        Absent: false,
        RecordedOn: posted.RecordedOn,
        ChangeProcessName: 'Acme',
        AttendableEventStart: null,
        RecordedBy: { ExternalID: guid(5) },
      },
    })
    expect(compareReadBack(posted, { value: [{ ...row, RecordedBy: null }] })).toMatchObject({
      reply: { RecordedBy: null },
    })
  })
})

it('takes a mark of any age for one that may have been posted long ago', () => {
  const profile = { ...freshProfile, times: 1, timeSeen: true }
  const kindFor = (anyAge: boolean, standing: object): string =>
    compareReadBack(posted, { value: [standing] }, { profile, timeSent: true, anyAge }).kind
  const old = { ...row, RecordedOn: '2026-06-10T09:00:00Z' }
  expect([kindFor(false, old), kindFor(true, old)]).toEqual(['absent', 'applied'])
  expect(kindFor(true, { ...old, ...otherCode })).toBe('absent')
})

it.each<[string, object, string, string]>([
  ['its own mark with an earlier time', { RecordedOn: earlier }, 'absent', 'applied'],
  ['its own mark with a later time', { RecordedOn: later }, 'applied', 'applied'],
  ['a mark that may be cut, with an earlier time', { ...cut, RecordedOn: earlier }, 'absent', 'unclear'],
  ['a mark that may be cut, with a later time', { ...cut, RecordedOn: later }, 'overwritten', 'applied'],
  ['another mark with an earlier time', { ...otherCode, RecordedOn: earlier }, 'absent', 'absent'],
  ['another mark with a later time', { ...otherCode, RecordedOn: later }, 'overwritten', 'overwritten'],
])('knows that V2 does not keep the time of a client: %s', (_what, standing, byV3, byV2) => {
  const profile = { ...freshProfile, times: 1, timeSeen: true }
  const long = { ...posted, Qualifier: { ...posted.Qualifier, Comment: 'a long comment' } }
  const value = [{ ...row, Qualifier: long.Qualifier, ...standing }]
  const kinds = [false, true].map(
    (isByV2) => compareReadBack(long, { value }, { profile, timeSent: true, byV2: isByV2 }).kind,
  )
  expect(kinds).toEqual([byV3, byV2])
})

it.each([
  ['is judged by the clock that V3 has', false, 'absent'],
  ['may be behind by more where it is the clock of V2', true, 'applied'],
])('a mark with the own time of a service %s', (_what, byV2, kind) => {
  const profile = { ...freshProfile, times: OWN_TIME, skew: { least: 0, most: 10 } }
  const value = [{ ...row, RecordedOn: '2026-06-10T09:30:00Z' }]
  expect(compareReadBack(posted, { value }, { profile, timeSent: true, byV2 }).kind).toBe(kind)
})

it('asks for the learner and the event', () => {
  expect(toReadBackFilter(posted)).toBe(
    `Attendee/ExternalID eq ${guid(1)} and Event/ExternalID eq ${guid(900)}`,
  )
})

describe('compareReadBack, under what is known of the service', () => {
  const known = (profile: object, more: object = {}) => ({
    profile: { ...freshProfile, ...profile },
    timeSent: true,
    ...more,
  })
  const shownAt = (time: string) => (externalId: string, recordedOn: string) =>
    externalId === row.ExternalID && recordedOn === time
  const longAgo = '2026-06-08T10:00:00Z'
  const older = { ...row, RecordedOn: earlier }
  const hourBehind = { least: -3_600_000, most: -3_600_000 }

  it.each([
    ['a mark of days before, of a clock that was not seen', known({}), { ...row, RecordedOn: longAgo }, 'applied'],
    ['one of a service that repeats posted times', known({ timeSeen: true }), { ...row, RecordedOn: longAgo }, 'applied'],
    ['one where no time is sent', known({}, { timeSent: false }), { ...row, RecordedOn: longAgo }, 'applied'],
    ['one of a service that keeps times', known({ times: 1, timeSeen: true }), { ...row, RecordedOn: longAgo }, 'absent'],
    ['one of days before of another program', known({}), { ...row, ChangeProcessName: 'Another program', RecordedOn: longAgo }, 'absent'],
    ['one of days before that is merely alike', known({ commentsOpaque: true }), { ...row, Qualifier: { ...row.Qualifier, Comment: 'other' }, RecordedOn: longAgo }, 'absent'],
    ['the mark of days before that was confirmed', known({}, { isConfirmed: shownAt(longAgo) }), { ...row, RecordedOn: longAgo }, 'absent'],
    ['a mark from before, of a service that keeps times', known({ times: 1, timeSeen: true }), older, 'absent'],
    ['a mark from after, of such a service', known({ times: 1 }), { ...row, ...otherCode, RecordedOn: later }, 'overwritten'],
    ['a mark of any age after a loss', known({ times: 1 }, { anyAge: true }), older, 'applied'],
    ['a mark of a clock an hour behind', known({ times: OWN_TIME, skew: hourBehind }), older, 'applied'],
    ['one that is older than that clock allows', known({ times: OWN_TIME, skew: hourBehind }), { ...row, RecordedOn: '2026-06-10T08:00:00Z' }, 'absent'],
    ['a mark without a time that somebody can read', known({}), { ...row, RecordedOn: 'yesterday' }, 'applied'],
    ['the mark that was confirmed before', known({}, { isConfirmed: shownAt(earlier) }), older, 'absent'],
    ['its id with another time', known({}, { isConfirmed: shownAt(later) }), older, 'applied'],
  ])('tells %s', (_what, knowledge, value, kind) => {
    expect(compareReadBack(posted, { value: [value] }, knowledge).kind).toBe(kind)
  }) // prettier-ignore

  it.each([
    ['minutes that an unknown rule changed', { minutesOpaque: true }, { MinutesLate: 5 }, 'applied'],
    ['a comment that an unknown rule changed', { commentsOpaque: true }, { Comment: 'x' }, 'applied'],
    ['no minutes as none, where they are kept', { nullsKept: true }, { MinutesLate: 0 }, 'overwritten'],
    ['no minutes as 0, where that may be', {}, { MinutesLate: 0 }, 'applied'],
  ])('tells %s', (_what, profile, Qualifier, kind) => {
    const value = [
      { ...row, RecordedOn: later, Qualifier: { MinutesLate: null, Comment: null, ...Qualifier } },
    ]
    const plain = { ...posted, Qualifier: { MinutesLate: null, Comment: null } }
    expect(compareReadBack(plain, { value }, known(profile)).kind).toBe(kind)
  })

  it('gives what proves the stored form, where the mark carries the posted millisecond', () => {
    const exact = { ...posted, RecordedOn: '2026-06-10T10:00:00.123Z' }
    const value = [{ ...row, RecordedOn: exact.RecordedOn }]
    expect(compareReadBack(exact, { value }, known({}))).toMatchObject({
      kind: 'applied',
      proof: { RecordedOn: exact.RecordedOn },
    })
  })
})
