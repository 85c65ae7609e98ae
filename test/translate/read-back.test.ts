import { describe, expect, it } from 'vitest'

import {
  decideReadBack,
  type ReadBack,
  type ReadBackFacts,
  readMarks,
  toReadBackFilter,
} from '../../src/translate/index.ts'
import { freshProfile } from '../../src/translate/echo-profile.ts'
import { readBackRules } from '../../src/translate/read-back.ts'
import { guid } from '../support/batch-request.ts'
import { nestedRecord } from '../writes/planned-record.ts'

/** A record that was received at 10:00:00.123 and sent half a minute later. */
const posted = {
  ...nestedRecord(1),
  RecordedOn: '2026-06-10T10:00:00.123Z',
  Qualifier: { MinutesLate: null, Comment: 'a long comment' },
}
const sentMs = Date.parse('2026-06-10T10:00:30.400Z')
const facts: ReadBackFacts = {
  profile: freshProfile,
  sent: { fromMs: sentMs, toMs: sentMs + 500 },
  confirmedAt: () => [],
  lost: [],
  newer: 'none',
  byV2: false,
}
/** The row that V3 has after it applied the record. */
const row = { ...posted, ExternalID: guid(77), RecordedBy: { ExternalID: guid(5), Type: 'User' } }
const otherCode = { AttendanceCode: { ExternalID: guid(801) } }
/** A comment that the service may have cut by a rule that the profile does not contain yet. */
const alike = { Qualifier: { MinutesLate: null, Comment: 'a long' } }

const daysBefore = { RecordedOn: '2026-06-08T10:00:00.5Z' }
const minuteBefore = { RecordedOn: '2026-06-10T09:59:00.5Z' }
const whileSent = { RecordedOn: '2026-06-10T10:00:30.7Z' }
const minuteAfter = { RecordedOn: '2026-06-10T10:01:30.5Z' }
const withoutTime = { RecordedOn: null }

/** Returns facts in which the journal knows that older records were confirmed with the id of `row` and these times. */
const confirmedAt = (...times: string[]): Pick<ReadBackFacts, 'confirmedAt'> => ({
  confirmedAt: (externalId) => (externalId === row.ExternalID ? times.map((time) => Date.parse(time)) : []),
})
const known = (mark: { readonly RecordedOn: string }): Pick<ReadBackFacts, 'confirmedAt'> =>
  confirmedAt(mark.RecordedOn)

/** Returns facts in which the journal knows that older records were posted with these values and have unknown outcomes. */
const lostOlder = (...values: object[]): Pick<ReadBackFacts, 'lost'> => ({
  lost: values.map((own) => ({ ...posted, ...own })),
})

function decide(value: readonly unknown[], own: Partial<ReadBackFacts> = {}): ReadBack {
  return decideReadBack(posted, readMarks(posted, { value }) ?? [], { ...facts, ...own })
}

type Cell = readonly [kind: string, condition: string, mark: object | undefined, own: Partial<ReadBackFacts>]

/** One entry for each cell of the table in docs/decisions/012-read-back.md. */
const cells: readonly (readonly [row: string, cells: readonly Cell[]])[] = [
  ['a read that shows no mark of the record', [
    ['absent', 'the journal has no newer record', undefined, {}],
    ['absent', 'a newer record waits', undefined, { newer: 'open' }],
    ['superseded', 'a newer record was confirmed', undefined, { newer: 'confirmed' }],
    ['absent', 'the service shows only a default mark of the system', { ...otherCode, RecordedBy: null, RecordedOn: null }, {}],
  ]],
  ['a mark that the journal knows as confirmed for an older record', [
    ['absent', 'its content differs', { ...otherCode, ...minuteBefore }, known(minuteBefore)],
    ['absent', 'its content differs and the clock of the service is ahead', { ...otherCode, ...minuteAfter }, known(minuteAfter)],
    ['absent', 'it may have the posted content', { ...alike, ...minuteAfter }, known(minuteAfter)],
    ['unclear', 'it may have the posted content and its second may be the rounded time of either record', { ...alike, RecordedOn: '2026-06-10T10:00:00Z' }, confirmedAt('2026-06-10T09:59:59.800Z')],
    ['unclear', 'it may have the posted content and its minute may be the rounded time of either record', { ...alike, RecordedOn: '2026-06-10T10:00:00Z' }, { ...confirmedAt('2026-06-10T09:59:31.000Z'), newer: 'open' }],
    ['unclear', 'it may have the posted content and its time is that of both records of a batch', alike, known(posted)],
    ['unclear', 'it may have the posted content and its second may be the rounded time of either call', { ...alike, RecordedOn: '2026-06-10T10:00:30Z' }, confirmedAt('2026-06-10T10:00:30.000Z')],
    ['applied', 'it has the posted content', minuteBefore, known(minuteBefore)],
    ['absent', 'its content differs and a newer record waits', { ...otherCode, ...minuteBefore }, { ...known(minuteBefore), newer: 'open' }],
    ['superseded', 'its content differs and a newer record was confirmed', { ...otherCode, ...minuteBefore }, { ...known(minuteBefore), newer: 'confirmed' }],
    ['absent', 'its content differs and the service now shows its time without milliseconds', { ...otherCode, RecordedOn: '2026-06-10T09:59:00Z' }, known(minuteBefore)],
    ['absent', 'its content differs and the service now shows its time rounded to the minute', { ...otherCode, RecordedOn: '2026-06-10T10:01:00Z' }, confirmedAt('2026-06-10T10:00:35.500Z')],
    ['absent', 'its content differs and the service now shows its time in another time zone', { ...otherCode, RecordedOn: '2026-06-10T10:59:00.5Z' }, known(minuteBefore)],
    ['absent', 'its content differs and the service shows no time', { ...otherCode, ...withoutTime }, { confirmedAt: () => [NaN] }],
  ]],
  ['a mark whose id the journal knows with another time', [
    ['absent', 'its time is before the call', { ...otherCode, ...daysBefore }, known(minuteBefore)],
    ['absent', 'its time is at the moment of the call', { ...otherCode, ...whileSent }, known(minuteBefore)],
    ['unclear', 'its time is at the moment of the call and V2 may have applied the record', { ...otherCode, ...whileSent }, { ...known(minuteBefore), byV2: true }],
    ['unclear', 'its time is after the call, so that it may have been edited', { ...otherCode, RecordedOn: '2026-06-10T10:07:31.5Z' }, known(minuteBefore)],
    ['unclear', 'it may have the posted content and its time is after the call', { ...alike, RecordedOn: '2026-06-10T10:07:31.5Z' }, known(minuteBefore)],
    ['applied', 'it has the posted content', minuteAfter, known(minuteBefore)],
  ]],
  ['a mark with the content of an older record whose outcome is unknown', [
    ['absent', 'the clock of the service is ahead', { ...otherCode, ...minuteAfter }, lostOlder(otherCode)],
    ['absent', 'its time is at the moment of the call', { ...otherCode, ...whileSent }, lostOlder(otherCode)],
    ['absent', 'it has no time', { ...otherCode, ...withoutTime }, lostOlder({}, otherCode)],
    ['absent', 'its comment may be cut', { ...otherCode, ...alike, ...whileSent }, lostOlder(otherCode)],
    ['overwritten', 'its values were edited since', { ...otherCode, Qualifier: { MinutesLate: 9, Comment: null }, ...minuteAfter }, lostOlder(otherCode)],
    ['applied', 'it also has the posted content', minuteAfter, lostOlder({})],
    ['unclear', 'it may also have the posted content', { ...alike, ...minuteBefore }, lostOlder({})],
    ['absent', 'the journal knows its id and its time is after the call', { ...otherCode, ...minuteAfter }, { ...known(minuteBefore), ...lostOlder(otherCode) }],
    ['absent', 'a newer record waits', { ...otherCode, ...whileSent }, { ...lostOlder(otherCode), newer: 'open' }],
    ['superseded', 'a newer record was confirmed', { ...otherCode, ...whileSent }, { ...lostOlder(otherCode), newer: 'confirmed' }],
  ]],
  ['a mark with the posted content that the journal does not know', [
    ['applied', 'it has the posted time', {}, {}],
    ['applied', 'its time is days before the call', daysBefore, {}],
    ['applied', 'its time is after the call', minuteAfter, {}],
    ['applied', 'it has no time', withoutTime, {}],
    ['applied', 'a newer record waits', minuteBefore, { newer: 'open' }],
    ['applied', 'a newer record was confirmed', minuteBefore, { newer: 'confirmed' }],
    ['applied', 'its comment has the length at which the service is known to cut comments', { ...alike, ...daysBefore }, { profile: { ...freshProfile, cutLength: 6 } }],
    ['applied', 'the service sets Present and Absent itself', { Present: false }, {}],
  ]],
  ['a mark that may have the posted content and that the journal does not know', [
    ['applied', 'it has the posted time', alike, {}],
    ['applied', 'its time is at the moment of the call', { ...alike, ...whileSent }, {}],
    ['unclear', 'its time is before the call and the clock of the service may be behind', { ...alike, ...minuteBefore }, {}],
    ['absent', 'its time is days before the call', { ...alike, ...daysBefore }, {}],
    ['unclear', 'its time is days before the call and V2 may have applied the record', { ...alike, ...daysBefore }, { byV2: true }],
    ['superseded', 'its time is days before the call and a newer record waits', { ...alike, ...daysBefore }, { newer: 'open' }],
  ]],
  ['a mark with other content while the journal has a newer record', [
    ['superseded', 'the newer record waits', { ...otherCode, ...minuteBefore }, { newer: 'open' }],
    ['superseded', 'the newer record was confirmed and the mark is from the same minute', { ...otherCode, RecordedOn: '2026-06-10T10:00:00Z' }, { newer: 'confirmed' }],
  ]],
  ['a mark with other content and a later time that the journal does not know', [
    ['overwritten', 'its time is after the call by more than the observed clock difference', { ...otherCode, ...minuteAfter }, {}],
    ['unclear', 'its time is after the call by less than the observed clock difference', { ...otherCode, ...minuteAfter }, { profile: { ...freshProfile, clockOffMs: 90_000 } }],
    ['absent', 'its time is between the receipt and the call', { ...otherCode, RecordedOn: '2026-06-10T10:00:20.5Z' }, {}],
  ]],
  ['a mark with other content and an earlier time that the journal does not know', [
    ['absent', 'its time is before the call by more than the observed clock difference', { ...otherCode, ...minuteBefore }, {}],
    ['unclear', 'its time is before the call by less than the observed clock difference', { ...otherCode, ...minuteBefore }, { profile: { ...freshProfile, clockOffMs: 90_000 } }],
    ['unclear', 'the service may have cut its time to the minute', { ...otherCode, RecordedOn: '2026-06-10T10:00:00Z' }, {}],
  ]],
  ['any mark while V3 may still be executing the batch', [
    ['unclear', 'no mark was read', undefined, { executing: true }],
    ['unclear', 'no mark was read and a newer record was confirmed', undefined, { executing: true, newer: 'confirmed' }],
    ['unclear', 'its content differs and the journal knows it for an older record', { ...otherCode, ...minuteBefore }, { ...known(minuteBefore), executing: true }],
    ['unclear', 'it has the content of an older record whose outcome is unknown', { ...otherCode, ...whileSent }, { ...lostOlder(otherCode), executing: true }],
    ['unclear', 'its content differs and a newer record waits', { ...otherCode, ...minuteBefore }, { newer: 'open', executing: true }],
    ['unclear', 'its content differs and its time is after the call', { ...otherCode, ...minuteAfter }, { executing: true }],
    ['unclear', 'it may have the posted content and the journal knows it for an older record', { ...alike, ...minuteAfter }, { ...known(minuteAfter), executing: true }],
    ['unclear', 'it may have the posted content, its time is days before the call and a newer record waits', { ...alike, ...daysBefore }, { newer: 'open', executing: true }],
    ['applied', 'it may have the posted content and it has the posted time', alike, { executing: true }],
    ['unclear', 'it may have the posted content and its time is at the moment of the call', { ...alike, ...whileSent }, { executing: true }],
    ['applied', 'it may have the posted content and its time is after the call', { ...alike, ...minuteAfter }, { executing: true }],
    ['applied', 'it has the posted content and the posted time', {}, { executing: true }],
    ['applied', 'it has the posted content and its time is after the call', minuteAfter, { executing: true }],
    ['applied', 'it has the posted content and the posted time in place of an older mark', {}, { ...known(minuteBefore), executing: true }],
    ['unclear', 'it has the posted content and its time is at the moment of the call', whileSent, { executing: true }],
    ['unclear', 'it has the posted content and the journal knows it for an older record', minuteBefore, { ...known(minuteBefore), executing: true }],
  ]],
  ['a mark with other content whose time decides nothing', [
    ['unclear', 'its time is at the moment of the call', { ...otherCode, ...whileSent }, {}],
    ['unclear', 'it has no time', { ...otherCode, ...withoutTime }, {}],
    ['unclear', 'its time cannot be parsed', { ...otherCode, RecordedOn: 'yesterday' }, {}],
  ]],
] // prettier-ignore

describe('decideReadBack', () => {
  describe.each(cells)('for %s', (_row, own) => {
    it.each(own)('decides "%s" if %s', (kind, _condition, mark, knowledge) => {
      expect(decide(mark === undefined ? [] : [{ ...row, ...mark }], knowledge).kind).toBe(kind)
    })
  })

  it('has a rule for each outcome, and decides "unclear" if no other rule applies', () => {
    expect(readBackRules.at(-1)).toEqual({ then: 'unclear' })
    const kinds = new Set(cells.flatMap(([, own]) => own.map(([kind]) => kind)))
    expect([...kinds].sort()).toEqual(['absent', 'applied', 'overwritten', 'superseded', 'unclear'])
  })

  it('decides "applied" for a mark with the posted values and any time', () => {
    for (const time of [daysBefore, minuteBefore, whileSent, minuteAfter, withoutTime])
      for (const newer of ['none', 'open', 'confirmed'] as const)
        for (const own of [{}, known(minuteBefore)])
          expect(decide([{ ...row, ...time }], { ...own, newer }).kind).toBe('applied')
  })
})

describe('decideReadBack, when a read returns several marks', () => {
  const another = { ...row, ...otherCode, ExternalID: guid(78) }

  it.each<[string, readonly object[], Partial<ReadBackFacts>, string]>([
    ['chooses the newest mark', [{ ...another, ...minuteAfter }, { ...another, ...daysBefore }], {}, 'overwritten'],
    ['chooses the newest mark in any order', [{ ...another, ...daysBefore }, { ...another, ...minuteAfter }], {}, 'overwritten'],
    ['chooses the posted mark among marks that the journal knows, whatever their times', [{ ...another, ...minuteAfter }, { ...row, ...minuteBefore }], { confirmedAt: (id) => (id === another.ExternalID ? [Date.parse(minuteAfter.RecordedOn)] : []) }, 'applied'],
    ['chooses the posted mark among others that only V2 knows', [{ ...another, ...minuteAfter }, { ...row, ...minuteBefore }], {}, 'applied'],
    ['does not choose an equal mark from days before', [{ ...another, ...minuteBefore }, { ...row, ...daysBefore }], {}, 'absent'],
    ['chooses a mark that the journal knows if all marks are known', [{ ...row, ...otherCode, ...minuteAfter }], known(minuteAfter), 'absent'],
    ['ignores marks of other learners', [{ ...row, Attendee: { ExternalID: guid(2) } }], {}, 'absent'],
    ['ignores a row without a code, author and time', [{ ...row, AttendanceCode: null, RecordedBy: null, RecordedOn: null }], {}, 'absent'],
  ])('%s', (_what, value, own, kind) => {
    expect(decide(value, own).kind).toBe(kind)
  }) // prettier-ignore

  it.each([
    [undefined],
    [null],
    [{}],
    [{ value: 1 }],
    [{ value: ['x'] }],
    ['text'],
    [{ value: [row], '@odata.nextLink': 'x' }],
    [{ value: [{ ...row, AttendanceCode: null, RecordedOn: null }] }],
    [{ value: [{ ...row, AttendanceCode: { ExternalID: null, Type: null }, RecordedBy: null }] }],
  ])('readMarks returns undefined for the answer %j', (answer) => {
    expect(readMarks(posted, answer)).toBeUndefined()
  })

  // `readCollection`, which reads pages for clients, follows the same rule.
  it('readMarks accepts a page with a next link of null', () => {
    expect(readMarks(posted, { value: [row], '@odata.nextLink': null })).toHaveLength(1)
  })

  it.each([
    ['with the posted time', {}, {}, true],
    ['with a time after the call', minuteAfter, {}, true],
    ['with a time before the call, which a stale read may show', minuteBefore, {}, false],
    ['with a time at the moment of the call', whileSent, {}, false],
    ['that the journal knows for an older record', {}, known(posted), false],
  ])(
    'says whether a single read proves that a record was applied, if V3 shows its values in a mark %s',
    (_what, mark, own, certain) => {
      expect(decide([{ ...row, ...mark }], own)).toMatchObject({ kind: 'applied', certain })
    },
  )

  it('returns the id and the times of the service, and learns the stored form only from a mark with the exact posted time', () => {
    expect(decide([row])).toEqual({
      kind: 'applied',
      certain: true,
      proof: { RecordedOn: posted.RecordedOn, Qualifier: posted.Qualifier },
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
    expect(decide([{ ...row, RecordedBy: null }])).toMatchObject({ reply: { RecordedBy: null } })
    expect(decide([{ ...row, RecordedOn: '2026-06-10T10:00:00Z' }])).toMatchObject({ proof: undefined })
  })
})

// service.md 2: every field but the key may be null. A null does not show the value that was stored.
describe('decideReadBack, for a mark with null members', () => {
  const full = { ...posted, Qualifier: { MinutesLate: 5, Comment: 'a long comment' } }
  const none = { ExternalID: null, Type: null }
  const nulls = { ...row, Present: null, Absent: null, ChangeProcessName: null, AttendableEventStart: null, RecordedBy: none, Qualifier: null } // prettier-ignore
  const decideFull = (mark: object, own: Partial<ReadBackFacts> = {}): ReadBack =>
    decideReadBack(full, readMarks(full, { value: [mark] }) ?? [], { ...facts, ...own })

  it.each<[string, object, Partial<ReadBackFacts>, string]>([
    ['with the posted time', {}, {}, 'applied'],
    ['with a time by the clock of the service', { RecordedOn: '2026-06-10T10:00:30.7Z' }, {}, 'applied'],
    ['without a time, like a default mark', { RecordedOn: null }, {}, 'unclear'],
    ['with a time before the call', minuteBefore, {}, 'unclear'],
    ['that the journal knows for an older record', minuteBefore, known(minuteBefore), 'absent'],
    ['with another code', { ...otherCode, ...minuteBefore }, {}, 'absent'],
    ['of a service that is known to show minutes and comments', minuteBefore, { profile: { ...freshProfile, qualifierShown: true } }, 'absent'],
  ])('decides "$3" for a mark $0, whose other members are null', (_what, mark, own, kind) => {
    expect(decideFull({ ...nulls, ...mark }, own).kind).toBe(kind)
  }) // prettier-ignore

  it('decides "applied" for a mark without author and time if V3 shows the posted minutes and comment', () => {
    expect(decideFull({ ...nulls, RecordedOn: null, Qualifier: full.Qualifier }).kind).toBe('applied')
  })

  it("returns the posted value for a null member, and the service's value for any other member", () => {
    expect(decideFull({ ...nulls, Absent: true })).toMatchObject({
      reply: { Present: full.Present, Absent: true },
    })
  })
})

it.each([
  [
    'decides "applied" for other minutes if an unknown rule may have changed the minutes',
    { minutesOpaque: true },
    { MinutesLate: 5 },
    'applied',
  ],
  [
    'decides "applied" for another comment if an unknown rule may have changed the comment',
    { commentsOpaque: true },
    { Comment: 'x' },
    'applied',
  ],
  [
    'decides "overwritten" for 0 minutes in place of none if the service stores missing minutes as missing',
    { nullKept: true },
    { MinutesLate: 0 },
    'overwritten',
  ],
  [
    'decides "applied" for 0 minutes in place of none if the service may store missing minutes as 0',
    {},
    { MinutesLate: 0 },
    'applied',
  ],
  [
    'decides "overwritten" for missing minutes in place of 0 if the service stores 0 as 0',
    { zeroKept: true, qualifierShown: true },
    { MinutesLate: null },
    'overwritten',
    0,
  ],
  [
    'decides "applied" for missing minutes in place of 0 if the service may store 0 as missing',
    { nullKept: true },
    { MinutesLate: null },
    'applied',
    0,
  ],
  ['decides "overwritten" for other minutes', {}, { MinutesLate: 5 }, 'overwritten'],
  ['decides "overwritten" for another comment', {}, { Comment: 'x' }, 'overwritten'],
] as const)('decideReadBack %s', (_what, profile, Qualifier, kind, MinutesLate: number | null = null) => {
  const plain = { ...posted, Qualifier: { MinutesLate, Comment: null } }
  const value = [{ ...row, ...minuteAfter, Qualifier: { MinutesLate: null, Comment: null, ...Qualifier } }]
  const marks = readMarks(plain, { value }) ?? []
  expect(decideReadBack(plain, marks, { ...facts, profile: { ...freshProfile, ...profile } }).kind).toBe(kind)
})

it('toReadBackFilter selects the learner and the event', () => {
  expect(toReadBackFilter(posted)).toBe(
    `Attendee/ExternalID eq ${guid(1)} and Event/ExternalID eq ${guid(900)}`,
  )
  const id = 'ABCDEF01-0000-4000-8000-000000000001'
  expect(toReadBackFilter({ ...posted, Attendee: { ExternalID: id } })).toContain(
    `eq ${id.toLowerCase()} and`,
  )
})
