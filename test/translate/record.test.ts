import { describe, expect, it } from 'vitest'

import {
  isReplyTo,
  type RecordMapping,
  toFlatRecord,
  toFlatReply,
  toV3Record,
} from '../../src/translate/index.ts'
import { decodeRecord, encodeFlatReply, type FlatRecord, type FlatReply } from '../../src/v2/index.ts'
import { parseJson } from '../../src/upstream/index.ts'
import { encodeRecord, type V3Record, type V3Reply } from '../../src/v3/index.ts'
import { isV3Reply } from '../../src/v3/record.ts'
import { anyGuid } from '../support/guid-arbitrary.ts'
import fc from 'fast-check'

const mapping: RecordMapping = {
  eventType: 'Attendance.AttendanceSession',
  codeType: 'Attendance.Lookup',
  changeProcessName: 'Acme',
  unmappedFields: 'report',
}
const at = '2026-06-10T10:00:00.000Z'
const [A, B, C, D] = ['a', 'b', 'c', 'd'].map(
  (digit) => `${digit.repeat(8)}-0000-4000-8000-000000000000`,
) as [string, string, string, string]

const flat: FlatRecord = {
  Present: true,
  Absent: false,
  Learner: A,
  AttendableEvent: B,
  SchoolAttendanceCode: C,
  MinutesLate: 5,
  Comment: 'late bus',
  unmapped: undefined,
}
const nested: V3Record = {
  ExternalID: '00000000-0000-0000-0000-000000000000',
  Present: true,
  Absent: false,
  RecordedOn: at,
  ChangeProcessName: 'Acme',
  AttendableEventStart: undefined,
  RecordedBy: undefined,
  Attendee: { ExternalID: A, Type: 'Learner.Identifier' },
  Event: { ExternalID: B, Type: 'Attendance.AttendanceSession' },
  AttendanceCode: { ExternalID: C, Type: 'Attendance.Lookup' },
  Qualifier: { MinutesLate: 5, Comment: 'late bus' },
}

const int32 = fc.integer({ min: -2_147_483_648, max: 2_147_483_647 })
/** Any text, including unpaired surrogates, line separators and control characters. */
const anyText = fc.string({
  unit: fc.oneof(
    fc.constantFrom('\ud800', '\udfff', '\u2028', '\u2029', '\r', '\n', '\u0000', '"', '\\', '\u{1f600}'),
    fc.string({ unit: 'binary', maxLength: 1 }),
  ),
})
const anyFlat: fc.Arbitrary<FlatRecord> = fc.record(
  {
    Present: fc.boolean(),
    Absent: fc.boolean(),
    Learner: anyGuid,
    AttendableEvent: anyGuid,
    SchoolAttendanceCode: anyGuid,
    MinutesLate: fc.option(fc.option(int32), { nil: undefined }),
    Comment: fc.option(fc.option(anyText), { nil: undefined }),
    unmapped: fc.constant(undefined),
  },
  { noNullPrototype: true },
)

function translate(record: FlatRecord): V3Record {
  const { record: translated } = toV3Record(record, mapping, at)
  if (translated === undefined) throw new Error('the record was refused')
  return translated
}

/** Returns the flat reply to a record if V3 repeats all its values. Members that the record lacks are null in the reply. */
function replyTo(record: FlatRecord, id: string): FlatReply {
  return {
    ExternalID: id,
    Present: record.Present,
    Absent: record.Absent,
    RecordedOn: at,
    ChangeProcessName: 'Acme',
    AttendableEventStart: null,
    RecordedBy: null,
    Learner: record.Learner,
    AttendableEvent: record.AttendableEvent,
    SchoolAttendanceCode: record.SchoolAttendanceCode,
    MinutesLate: record.MinutesLate ?? null,
    Comment: record.Comment ?? null,
  }
}

describe('toV3Record', () => {
  it('translates every flat member to its place in V3 (service.md 9 (3))', () => {
    expect(toV3Record(flat, mapping, at)).toEqual({ record: nested, faults: undefined, unmapped: [] })
  })

  it.each([
    ['nulls', { MinutesLate: null, Comment: null }],
    ['missing members', { MinutesLate: undefined, Comment: undefined }],
    ['neither Present nor Absent', { Present: false, Absent: false }],
    ['both Present and Absent', { Present: true, Absent: true }],
  ])('translates a record with %s without changing its values', (_name, change) => {
    expect(toFlatRecord(translate({ ...flat, ...change }))).toStrictEqual({ ...flat, ...change })
  })

  it('loses nothing: toFlatRecord restores every flat record from the V3 form', () => {
    fc.assert(
      fc.property(anyFlat, (record) => {
        expect(toFlatRecord(translate(record))).toStrictEqual(record)
      }),
      { numRuns: 2_000 },
    )
  })

  it.each(['full', 'minimal'] as const)(
    'loses nothing: toFlatReply restores every value if V3 repeats the posted %s body',
    (profile) => {
      fc.assert(
        fc.property(anyFlat, anyGuid, (record, id) => {
          const posted = translate(record)
          const echo = { ...(parseJson(encodeRecord(posted, profile)) as object), ExternalID: id }
          const reply = parseJson(JSON.stringify(echo))
          if (!isV3Reply(reply)) throw new Error('the echo is no reply')
          expect(isReplyTo(posted, reply)).toBe(true)
          const back = toFlatReply(posted, reply)
          expect(back).toStrictEqual(replyTo(record, id))
          // A client that decodes the reply as a record gets the posted content.
          const again = decodeRecord(encodeFlatReply(back, 'c', 'none')).record
          expect({ ...again, unmapped: undefined, converted: undefined }).toStrictEqual({
            converted: undefined,
            ...record,
            MinutesLate: back.MinutesLate,
            Comment: back.Comment,
          })
        }),
        { numRuns: 1_000 },
      )
    },
  )
})

describe('toV3Record, for members that V3 does not have', () => {
  const unmapped = [
    { name: 'RecordedOn', raw: '"2014-02-13T13:00:00Z"' },
    { name: 'RecordedBy', raw: `"${D}"` },
    { name: 'AttendableEventStart', raw: '"2014-02-13T13:00:00+01:00"' },
    { name: 'ChangeProcessName', raw: '"Own"' },
    { name: 'Mood', raw: '[1]' },
  ]
  const record = { ...flat, unmapped }

  it('returns at most 20 faults in the mode strict', () => {
    const many = { ...record, unmapped: Array.from({ length: 900 }, (_, n) => ({ name: `a${n}`, raw: '1' })) }
    expect(toV3Record(many, { ...mapping, unmappedFields: 'strict' }, at).faults).toHaveLength(20)
  })

  it('refuses the record, and names each such member, in the mode strict', () => {
    const { record: none, faults } = toV3Record(record, { ...mapping, unmappedFields: 'strict' }, at)
    expect(none).toBe(undefined)
    expect(faults).toEqual(
      unmapped.map(({ name }) => ({
        code: 'ADP_UNMAPPED_FIELD',
        message: expect.stringContaining(name) as unknown,
      })),
    )
  })

  it.each(['', ' ', 'a b', 'x'.repeat(65), '1st', 'caf\u00e9', '<script>'])(
    'does not repeat the unusual name %j in a fault in the mode strict',
    (name) => {
      const odd = { ...flat, unmapped: [{ name, raw: '1' }] }
      expect(toV3Record(odd, { ...mapping, unmappedFields: 'strict' }, at).faults).toEqual([
        { code: 'ADP_UNMAPPED_FIELD', message: expect.stringMatching(/^A member has no place/) as unknown },
      ])
    },
  )

  it('forwards the members that V3 can store, and reports the other members, in the mode pass', () => {
    expect(toV3Record(record, { ...mapping, unmappedFields: 'pass' }, at)).toEqual({
      record: {
        ...nested,
        RecordedOn: '2014-02-13T13:00:00Z',
        RecordedBy: { ExternalID: D, Type: 'AuthorisedUser' },
        AttendableEventStart: '2014-02-13T13:00:00+01:00',
        ChangeProcessName: 'Own',
      },
      faults: undefined,
      unmapped: ['Mood'],
    })
  })

  it('drops all such members, and reports the name of each, in the mode report', () => {
    expect(toV3Record(record, mapping, at)).toEqual({
      record: nested,
      faults: undefined,
      unmapped: unmapped.map(({ name }) => name),
    })
  })

  it('never drops a member without a report, in any mode', () => {
    const value = fc.oneof(fc.json(), fc.constantFrom('null', '"2014-02-13T13:00:00Z"', `"${D}"`, '"Own"'))
    const name = fc.oneof(
      fc.constantFrom(...unmapped.map((field) => field.name), '@odata.type', 'recordedon', '__proto__'),
      fc.string(),
    )
    const fields = fc.uniqueArray(fc.record({ name, raw: value }), {
      selector: (field) => field.name,
      minLength: 1,
      maxLength: 8,
    })
    const policy = fc.constantFrom('strict' as const, 'pass' as const, 'report' as const)
    fc.assert(
      fc.property(fields, policy, (own, unmappedFields) => {
        const result = toV3Record({ ...flat, unmapped: own }, { ...mapping, unmappedFields }, at)
        if (result.faults !== undefined) {
          expect(result.faults.length).toBeGreaterThan(0)
          return
        }
        const reported = new Set(result.unmapped)
        for (const { name: own_, raw } of own) {
          if (reported.has(own_)) continue
          const kept: unknown = new Map<string, unknown>(Object.entries(result.record)).get(own_)
          const parsed: unknown = JSON.parse(raw)
          expect(
            own_ === 'RecordedBy' && parsed !== null ? (kept as { ExternalID: string }).ExternalID : kept,
          ).toEqual(parsed)
        }
      }),
      { numRuns: 2_000 },
    )
  })
})

describe('toFlatReply', () => {
  const id = D
  it('returns the posted value of each member that the reply of V3 does not have', () => {
    expect(toFlatReply(nested, { ExternalID: id })).toEqual({
      ExternalID: id, Present: true, Absent: false, RecordedOn: at, ChangeProcessName: 'Acme', AttendableEventStart: null,
      RecordedBy: null, Learner: A, AttendableEvent: B, SchoolAttendanceCode: C, MinutesLate: 5, Comment: 'late bus',
    }) // prettier-ignore
  })

  it("returns V3's value of each member that the reply of V3 has", () => {
    expect(
      toFlatReply(nested, {
        ExternalID: id, Present: false, Absent: true, RecordedOn: 'r', ChangeProcessName: 'p', AttendableEventStart: 's',
        RecordedBy: { ExternalID: B }, Attendee: { ExternalID: B }, Event: { ExternalID: C }, AttendanceCode: { ExternalID: A },
        Qualifier: { MinutesLate: 0, Comment: '' },
      }), // prettier-ignore
    ).toEqual({
      ExternalID: id, Present: false, Absent: true, RecordedOn: 'r', ChangeProcessName: 'p', AttendableEventStart: 's',
      RecordedBy: B, Learner: B, AttendableEvent: C, SchoolAttendanceCode: A, MinutesLate: 0, Comment: '',
    }) // prettier-ignore
  })

  const posted: V3Record = { ...nested, RecordedBy: { ExternalID: C }, AttendableEventStart: 's' }
  const none = { ExternalID: null, Type: null }
  const nulls = { Present: null, Absent: null, RecordedOn: null, ChangeProcessName: null, AttendableEventStart: null } // prettier-ignore
  it.each<[string, Omit<V3Reply, 'ExternalID'>]>([
    ['every member', { RecordedBy: null, Attendee: null, Event: null, AttendanceCode: null, Qualifier: null }],
    ['the members of objects', { RecordedBy: none, Attendee: none, Event: none, AttendanceCode: none, Qualifier: { MinutesLate: null, Comment: null } }],
  ])('returns the posted values if the reply of V3 shows null for %s', (_name, inner) => {
    const reply = { ExternalID: id, ...nulls, ...inner }
    expect(toFlatReply(posted, reply)).toEqual(toFlatReply(posted, { ExternalID: id }))
    expect(isReplyTo(posted, reply)).toBe(true)
  }) // prettier-ignore

  it('returns ids in the letter case that the client used', () => {
    const upper = { ...nested, Attendee: { ExternalID: A.toUpperCase() }, RecordedBy: { ExternalID: B.toUpperCase() } }
    const reply = { ExternalID: id, Attendee: { ExternalID: A }, RecordedBy: { ExternalID: B } }
    expect(toFlatReply(upper, reply)).toMatchObject({ Learner: A.toUpperCase(), RecordedBy: B.toUpperCase() })
  }) // prettier-ignore

  it('completes a qualifier that the reply of V3 shows in part', () => {
    expect(toFlatReply(posted, { ExternalID: id, Qualifier: { MinutesLate: 9 } })).toMatchObject({
      MinutesLate: 9,
      Comment: 'late bus',
      RecordedBy: C,
    })
    expect(toFlatReply(posted, { ExternalID: id, Qualifier: { Comment: null } })).toMatchObject({
      MinutesLate: 5,
      Comment: 'late bus',
    })
  })
})

describe('isReplyTo', () => {
  it.each([
    [{}, true],
    [{ Attendee: { ExternalID: A.toUpperCase() }, Event: { ExternalID: B.toUpperCase() } }, true],
    [{ Attendee: { ExternalID: B } }, false],
    [{ Event: { ExternalID: A } }, false],
    [{ Attendee: { ExternalID: A }, Event: { ExternalID: D } }, false],
    [{ AttendanceCode: { ExternalID: D } }, true],
  ])(
    'decides by the learner and the event whether %j is the reply to the posted record: %s',
    (reply, expected) => {
      expect(isReplyTo(nested, { ExternalID: D, ...reply })).toBe(expected)
    },
  )
})

const id = 'ABCDEF01-0000-4000-8000-000000000001'

describe('toV3Record in the mode pass for unmapped fields', () => {
  const pass = (name: string, raw: string) =>
    toV3Record({ ...flat, unmapped: [{ name, raw }] }, { ...mapping, unmappedFields: 'pass' }, at)

  const read: [name: string, raw: string, passed: Partial<V3Record>][] = [
    ['RecordedOn', '"2014-02-13T13:00:00Z"', { RecordedOn: '2014-02-13T13:00:00Z' }],
    ['RecordedOn', "'2014-02-13T13:00:00.1234567+01:00'", { RecordedOn: '2014-02-13T13:00:00.1234567+01:00' }],
    ['AttendableEventStart', '"2014-02-13T13:00-09:30"', { AttendableEventStart: '2014-02-13T13:00-09:30' }],
    ['ChangeProcessName', '"caf\\u00e9"', { ChangeProcessName: 'caf\u00e9' }],
    ['ChangeProcessName', 'null', { ChangeProcessName: null }],
    ['RecordedBy', `"${id}"`, { RecordedBy: { ExternalID: id, Type: 'AuthorisedUser' } }],
    ['RecordedBy', 'null', { RecordedBy: null }],
  ] // prettier-ignore
  it.each(read)('forwards the member %s with the value %s', (name, raw, expected) => {
    expect(pass(name, raw)).toEqual({ record: { ...nested, ...expected }, faults: undefined, unmapped: [] })
  })

  const refused: [name: string, raw: string, rule: string][] = [
    ['RecordedOn', 'null', 'a date-time with an offset'],
    ['RecordedOn', '"2014-02-13"', 'a date-time with an offset'],
    ['RecordedOn', '"2014-02-13T13:00:00"', 'a date-time with an offset'],
    ['RecordedOn', '"2014-02-13T13:00:00Z\\n"', 'a date-time with an offset'],
    ['AttendableEventStart', '1392296400', 'a date-time with an offset'],
    ['ChangeProcessName', '{"a":1}', 'a string or null'],
    ['ChangeProcessName', 'false', 'a string or null'],
    ['RecordedBy', '""', 'a guid or null'],
    ['RecordedBy', '"x"', 'a guid or null'],
    ['RecordedBy', `{"ExternalID":"${id}"}`, 'a guid or null'],
  ]
  it.each(refused)('refuses the member %s with the value %s', (name, raw, rule) => {
    expect(pass(name, raw).faults).toEqual([
      { code: 'ADP_FIELD', message: expect.stringContaining(`${name} must be ${rule}. `) as unknown },
    ])
  })

  it.each(['recordedOn', 'ExternalID', '@odata.type', '__proto__', 'AttendanceHistorys', ''])(
    'reports the name %j, because V3 has no such member',
    (name) => {
      expect(pass(name, '"x"')).toEqual({ record: nested, faults: undefined, unmapped: [name] })
    },
  )
})
