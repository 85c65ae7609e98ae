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
/** The comment of this row may be cut by a rule that was not observed yet. */
const alike = { Qualifier: { MinutesLate: null, Comment: 'a long' } }

const daysBefore = { RecordedOn: '2026-06-08T10:00:00.5Z' }
const minuteBefore = { RecordedOn: '2026-06-10T09:59:00.5Z' }
const whileSent = { RecordedOn: '2026-06-10T10:00:30.7Z' }
const minuteAfter = { RecordedOn: '2026-06-10T10:01:30.5Z' }
const withoutTime = { RecordedOn: null }

/** The journal knows this mark, with this time, from an older record. */
const confirmedAt = (...times: string[]): Pick<ReadBackFacts, 'confirmedAt'> => ({
  confirmedAt: (externalId) => (externalId === row.ExternalID ? times.map((time) => Date.parse(time)) : []),
})
const known = (mark: { readonly RecordedOn: string }): Pick<ReadBackFacts, 'confirmedAt'> =>
  confirmedAt(mark.RecordedOn)

/** Older records that were posted with these values and have an unknown outcome. */
const lostOlder = (...values: object[]): Pick<ReadBackFacts, 'lost'> => ({
  lost: values.map((own) => ({ ...posted, ...own })),
})

function decide(value: readonly unknown[], own: Partial<ReadBackFacts> = {}): ReadBack {
  return decideReadBack(posted, readMarks(posted, { value }) ?? [], { ...facts, ...own })
}

type Cell = readonly [what: string, mark: object | undefined, own: Partial<ReadBackFacts>, kind: string]

/** One entry for each cell of the table in docs/decisions/012-read-back.md. */
const cells: readonly (readonly [row: string, cells: readonly Cell[]])[] = [
  ['no mark', [
    ['no mark was read', undefined, {}, 'absent'],
    ['a newer record waits', undefined, { newer: 'open' }, 'absent'],
    ['a newer record was confirmed', undefined, { newer: 'confirmed' }, 'superseded'],
    ['a default mark of the system', { ...otherCode, RecordedBy: null, RecordedOn: null }, {}, 'absent'],
  ]],
  ['a mark that the journal knows as confirmed for an older record', [
    ['other content', { ...otherCode, ...minuteBefore }, known(minuteBefore), 'absent'],
    ['other content, by a clock that is ahead', { ...otherCode, ...minuteAfter }, known(minuteAfter), 'absent'],
    ['content that is alike', { ...alike, ...minuteAfter }, known(minuteAfter), 'absent'],
    ['content that is alike, and a second to which the times of both records may be rounded', { ...alike, RecordedOn: '2026-06-10T10:00:00Z' }, confirmedAt('2026-06-10T09:59:59.800Z'), 'unclear'],
    ['content that is alike, and a minute to which the times of both records may be rounded', { ...alike, RecordedOn: '2026-06-10T10:00:00Z' }, { ...confirmedAt('2026-06-10T09:59:31.000Z'), newer: 'open' }, 'unclear'],
    ['content that is alike, and the time that both records of a batch have', alike, known(posted), 'unclear'],
    ['content that is alike, and a second to which the service may round the times of both calls', { ...alike, RecordedOn: '2026-06-10T10:00:30Z' }, confirmedAt('2026-06-10T10:00:30.000Z'), 'unclear'],
    ['equal content', minuteBefore, known(minuteBefore), 'applied'],
    ['other content, and a newer record waits', { ...otherCode, ...minuteBefore }, { ...known(minuteBefore), newer: 'open' }, 'absent'],
    ['other content, and a newer record was confirmed', { ...otherCode, ...minuteBefore }, { ...known(minuteBefore), newer: 'confirmed' }, 'superseded'],
    ['shown without milliseconds in the meantime', { ...otherCode, RecordedOn: '2026-06-10T09:59:00Z' }, known(minuteBefore), 'absent'],
    ['shown rounded to the minute in the meantime', { ...otherCode, RecordedOn: '2026-06-10T10:01:00Z' }, confirmedAt('2026-06-10T10:00:35.500Z'), 'absent'],
    ['shown in another time zone in the meantime', { ...otherCode, RecordedOn: '2026-06-10T10:59:00.5Z' }, known(minuteBefore), 'absent'],
    ['shown without a time', { ...otherCode, ...withoutTime }, { confirmedAt: () => [NaN] }, 'absent'],
  ]],
  ['the id of a mark that the journal knows, with another time', [
    ['from before', { ...otherCode, ...daysBefore }, known(minuteBefore), 'absent'],
    ['from the moment of the call', { ...otherCode, ...whileSent }, known(minuteBefore), 'absent'],
    ['from the moment of the call, and V2 may have applied the record', { ...otherCode, ...whileSent }, { ...known(minuteBefore), byV2: true }, 'unclear'],
    ['from after the call, so possibly edited', { ...otherCode, RecordedOn: '2026-06-10T10:07:31.5Z' }, known(minuteBefore), 'unclear'],
    ['alike, from after the call', { ...alike, RecordedOn: '2026-06-10T10:07:31.5Z' }, known(minuteBefore), 'unclear'],
    ['equal content', minuteAfter, known(minuteBefore), 'applied'],
  ]],
  ['the content of an older record whose outcome is unknown', [
    ['by a clock that is ahead', { ...otherCode, ...minuteAfter }, lostOlder(otherCode), 'absent'],
    ['from the moment of the call', { ...otherCode, ...whileSent }, lostOlder(otherCode), 'absent'],
    ['without a time', { ...otherCode, ...withoutTime }, lostOlder({}, otherCode), 'absent'],
    ['its comment possibly cut', { ...otherCode, ...alike, ...whileSent }, lostOlder(otherCode), 'absent'],
    ['its values edited in the meantime', { ...otherCode, Qualifier: { MinutesLate: 9, Comment: null }, ...minuteAfter }, lostOlder(otherCode), 'overwritten'],
    ['and equal to the posted content', minuteAfter, lostOlder({}), 'applied'],
    ['that is possibly the posted content too', { ...alike, ...minuteBefore }, lostOlder({}), 'unclear'],
    ['with an id that the journal knows, from after the call', { ...otherCode, ...minuteAfter }, { ...known(minuteBefore), ...lostOlder(otherCode) }, 'absent'],
    ['and a newer record waits', { ...otherCode, ...whileSent }, { ...lostOlder(otherCode), newer: 'open' }, 'absent'],
    ['and a newer record was confirmed', { ...otherCode, ...whileSent }, { ...lostOlder(otherCode), newer: 'confirmed' }, 'superseded'],
  ]],
  ['equal content, unknown to the journal', [
    ['with the posted time', {}, {}, 'applied'],
    ['from days before', daysBefore, {}, 'applied'],
    ['from after the call', minuteAfter, {}, 'applied'],
    ['without a time', withoutTime, {}, 'applied'],
    ['and a newer record waits', minuteBefore, { newer: 'open' }, 'applied'],
    ['and a newer record was confirmed', minuteBefore, { newer: 'confirmed' }, 'applied'],
    ['cut where this service is known to cut', { ...alike, ...daysBefore }, { profile: { ...freshProfile, cutLength: 6 } }, 'applied'],
    ['of a service that sets the booleans itself', { Present: false }, {}, 'applied'],
  ]],
  ['content that may be the posted one, unknown to the journal', [
    ['with the posted time', alike, {}, 'applied'],
    ['from the moment of the call', { ...alike, ...whileSent }, {}, 'applied'],
    ['from before, by a clock that may be behind', { ...alike, ...minuteBefore }, {}, 'unclear'],
    ['from days before', { ...alike, ...daysBefore }, {}, 'absent'],
    ['from days before, and V2 may have applied the record', { ...alike, ...daysBefore }, { byV2: true }, 'unclear'],
    ['from days before, and a newer record waits', { ...alike, ...daysBefore }, { newer: 'open' }, 'superseded'],
  ]],
  ['other content, and the journal knows a newer record', [
    ['that waits', { ...otherCode, ...minuteBefore }, { newer: 'open' }, 'superseded'],
    ['that was confirmed, in the same minute', { ...otherCode, RecordedOn: '2026-06-10T10:00:00Z' }, { newer: 'confirmed' }, 'superseded'],
  ]],
  ['other content, unknown to the journal, later than the call', [
    ['beyond the observed clock difference', { ...otherCode, ...minuteAfter }, {}, 'overwritten'],
    ['within the observed clock difference', { ...otherCode, ...minuteAfter }, { profile: { ...freshProfile, clockOffMs: 90_000 } }, 'unclear'],
    ['later than the receipt but not than the call', { ...otherCode, RecordedOn: '2026-06-10T10:00:20.5Z' }, {}, 'absent'],
  ]],
  ['other content, unknown to the journal, older than the call', [
    ['beyond the observed clock difference', { ...otherCode, ...minuteBefore }, {}, 'absent'],
    ['within the observed clock difference', { ...otherCode, ...minuteBefore }, { profile: { ...freshProfile, clockOffMs: 90_000 } }, 'unclear'],
    ['within the minute to which the service cuts times', { ...otherCode, RecordedOn: '2026-06-10T10:00:00Z' }, {}, 'unclear'],
  ]],
  ['a batch that V3 may still be executing', [
    ['no mark was read', undefined, { executing: true }, 'unclear'],
    ['no mark was read, and a newer record was confirmed', undefined, { executing: true, newer: 'confirmed' }, 'unclear'],
    ['other content of an older record', { ...otherCode, ...minuteBefore }, { ...known(minuteBefore), executing: true }, 'unclear'],
    ['other content of an older record with an unknown outcome', { ...otherCode, ...whileSent }, { ...lostOlder(otherCode), executing: true }, 'unclear'],
    ['other content, and a newer record waits', { ...otherCode, ...minuteBefore }, { newer: 'open', executing: true }, 'unclear'],
    ['other content, later than the call', { ...otherCode, ...minuteAfter }, { executing: true }, 'unclear'],
    ['content that is alike, of an older record', { ...alike, ...minuteAfter }, { ...known(minuteAfter), executing: true }, 'unclear'],
    ['content that is alike, from days before, and a newer record waits', { ...alike, ...daysBefore }, { newer: 'open', executing: true }, 'unclear'],
    ['content that is alike, with the posted time', alike, { executing: true }, 'applied'],
    ['content that is alike, from the moment of the call', { ...alike, ...whileSent }, { executing: true }, 'unclear'],
    ['content that is alike, from after the call', { ...alike, ...minuteAfter }, { executing: true }, 'applied'],
    ['equal content, with the posted time', {}, { executing: true }, 'applied'],
    ['equal content, from after the call', minuteAfter, { executing: true }, 'applied'],
    ['equal content, with the posted time, in place of an older mark', {}, { ...known(minuteBefore), executing: true }, 'applied'],
    ['equal content, from the moment of the call', whileSent, { executing: true }, 'unclear'],
    ['equal content of an older record', minuteBefore, { ...known(minuteBefore), executing: true }, 'unclear'],
  ]],
  ['other content, with a time that decides nothing', [
    ['from the moment of the call', { ...otherCode, ...whileSent }, {}, 'unclear'],
    ['without a time', { ...otherCode, ...withoutTime }, {}, 'unclear'],
    ['with a time that cannot be read', { ...otherCode, RecordedOn: 'yesterday' }, {}, 'unclear'],
  ]],
] // prettier-ignore

describe('decideReadBack: by identity, content and order, and by time last', () => {
  describe.each(cells)('%s', (_row, own) => {
    it.each(own)('decides the outcome: %s', (_what, mark, knowledge, kind) => {
      expect(decide(mark === undefined ? [] : [{ ...row, ...mark }], knowledge).kind).toBe(kind)
    })
  })

  it('reaches every decision, and leaves all other cases unclear by the last rule', () => {
    expect(readBackRules.at(-1)).toEqual({ then: 'unclear' })
    const kinds = new Set(cells.flatMap(([, own]) => own.map(([, , , kind]) => kind)))
    expect([...kinds].sort()).toEqual(['absent', 'applied', 'overwritten', 'superseded', 'unclear'])
  })

  it('accepts a mark with the posted values at any time, so that nothing is posted by time alone', () => {
    for (const time of [daysBefore, minuteBefore, whileSent, minuteAfter, withoutTime])
      for (const newer of ['none', 'open', 'confirmed'] as const)
        for (const own of [{}, known(minuteBefore)])
          expect(decide([{ ...row, ...time }], { ...own, newer }).kind).toBe('applied')
  })
})

describe('the choice of the current mark', () => {
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
  ])('cannot read marks from %j', (answer) => {
    expect(readMarks(posted, answer)).toBeUndefined()
  })

  // The pages of reads (`readCollection`) follow the same rule.
  it('reads the only page of a service that writes its next link as null', () => {
    expect(readMarks(posted, { value: [row], '@odata.nextLink': null })).toHaveLength(1)
  })

  it.each([
    ['with the posted time', {}, {}, true],
    ['from after the call', minuteAfter, {}, true],
    ['from before, so that a read may be stale', minuteBefore, {}, false],
    ['from about the call', whileSent, {}, false],
    ['that the journal knows for an older record', {}, known(posted), false],
  ])('decides whether an equal mark is certain without a later read: %s', (_what, mark, own, certain) => {
    expect(decide([{ ...row, ...mark }], own)).toMatchObject({ kind: 'applied', certain })
  })

  it('returns the id and the times of the service, and takes the posted millisecond as proof of the stored form', () => {
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

// service.md 2: every field but the key may be null, which does not show what was stored.
describe('decideReadBack for a mark with null members', () => {
  const full = { ...posted, Qualifier: { MinutesLate: 5, Comment: 'a long comment' } }
  const none = { ExternalID: null, Type: null }
  const nulls = { ...row, Present: null, Absent: null, ChangeProcessName: null, AttendableEventStart: null, RecordedBy: none, Qualifier: null } // prettier-ignore
  const decideFull = (mark: object, own: Partial<ReadBackFacts> = {}): ReadBack =>
    decideReadBack(full, readMarks(full, { value: [mark] }) ?? [], { ...facts, ...own })

  it.each<[string, object, Partial<ReadBackFacts>, string]>([
    ['with the posted time', {}, {}, 'applied'],
    ['by the clock of the service', { RecordedOn: '2026-06-10T10:00:30.7Z' }, {}, 'applied'],
    ['without a time, as default marks are', { RecordedOn: null }, {}, 'unclear'],
    ['from before', minuteBefore, {}, 'unclear'],
    ['that the journal knows for an older record', minuteBefore, known(minuteBefore), 'absent'],
    ['of another code', { ...otherCode, ...minuteBefore }, {}, 'absent'],
    ['of a service that shows minutes and comments', minuteBefore, { profile: { ...freshProfile, qualifierShown: true } }, 'absent'],
  ])('compares only the members that are not null: %s', (_what, mark, own, kind) => {
    expect(decideFull({ ...nulls, ...mark }, own).kind).toBe(kind)
  }) // prettier-ignore

  it('accepts a mark without author and time if nothing else is missing', () => {
    expect(decideFull({ ...nulls, RecordedOn: null, Qualifier: full.Qualifier }).kind).toBe('applied')
  })

  it("reports the posted value of a null member and the service's value of any other", () => {
    expect(decideFull({ ...nulls, Absent: true })).toMatchObject({
      reply: { Present: full.Present, Absent: true },
    })
  })
})

it.each([
  ['minutes that an unknown rule changed', { minutesOpaque: true }, { MinutesLate: 5 }, 'applied'],
  ['a comment that an unknown rule changed', { commentsOpaque: true }, { Comment: 'x' }, 'applied'],
  [
    'posted missing minutes with 0 if the service keeps missing ones',
    { nullKept: true },
    { MinutesLate: 0 },
    'overwritten',
  ],
  ['posted missing minutes with 0 if the service may change them', {}, { MinutesLate: 0 }, 'applied'],
  [
    'posted 0 minutes with missing ones if the service keeps 0',
    { zeroKept: true, qualifierShown: true },
    { MinutesLate: null },
    'overwritten',
    0,
  ],
  [
    'posted 0 minutes with missing ones if the service keeps only missing ones',
    { nullKept: true },
    { MinutesLate: null },
    'applied',
    0,
  ],
  ['different minutes', {}, { MinutesLate: 5 }, 'overwritten'],
  ['different comments', {}, { Comment: 'x' }, 'overwritten'],
] as const)('compares %s', (_what, profile, Qualifier, kind, MinutesLate: number | null = null) => {
  const plain = { ...posted, Qualifier: { MinutesLate, Comment: null } }
  const value = [{ ...row, ...minuteAfter, Qualifier: { MinutesLate: null, Comment: null, ...Qualifier } }]
  const marks = readMarks(plain, { value }) ?? []
  expect(decideReadBack(plain, marks, { ...facts, profile: { ...freshProfile, ...profile } }).kind).toBe(kind)
})

it('filters by the learner and the event', () => {
  expect(toReadBackFilter(posted)).toBe(
    `Attendee/ExternalID eq ${guid(1)} and Event/ExternalID eq ${guid(900)}`,
  )
  const id = 'ABCDEF01-0000-4000-8000-000000000001'
  expect(toReadBackFilter({ ...posted, Attendee: { ExternalID: id } })).toContain(
    `eq ${id.toLowerCase()} and`,
  )
})
