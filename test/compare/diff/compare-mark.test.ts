import { describe, expect, it } from 'vitest'

import { compareMark } from '../../../src/compare/diff/index.ts'
import { guid, markRow } from './mark-rows.ts'

type Change = Readonly<Record<string, unknown>>

/** Member as V2 has it, as V3 has it, and what is to be found: path, kind and classes, or a rule. */
const differing: readonly (readonly [what: string, v2: Change, v3: Change, found: string])[] = [
  [
    'a time that is an hour later',
    {},
    { RecordedOn: '2026-03-02T10:05:11Z' },
    'RecordedOn value time time:+3600s',
  ],
  ['a time of an odd shift', {}, { RecordedOn: '2026-03-02T09:05:04Z' }, 'RecordedOn value time time:-1-60s'],
  [
    'a time a week off',
    {},
    { AttendableEventStart: '2026-04-02T08:45:00Z' },
    'AttendableEventStart value time time:+>7d',
  ],
  ['a time without offset', {}, { RecordedOn: '2026-03-02T09:05:11' }, 'RecordedOn value time length:10-20'],
  [
    'another code',
    {},
    { SchoolAttendanceCode: guid(0xe, 2) },
    'SchoolAttendanceCode value code:present code:present',
  ],
  ['a code of another type', {}, { SchoolAttendanceCode: 7 }, 'SchoolAttendanceCode type guid number:6-15'],
  ['another learner', {}, { Learner: guid(0xc, 99) }, 'Learner value guid guid'],
  [
    'a comment that is cut',
    { Comment: 'Came in with his mother' },
    { Comment: 'Came in with' },
    'Comment value length:21-50 length:10-20 cut',
  ],
  [
    'a comment that is trimmed',
    { Comment: ' dentist ' },
    { Comment: 'dentist' },
    'Comment value length:1-9 length:1-9 trimmed',
  ],
  [
    'a comment in another case',
    { Comment: 'Dentist' },
    { Comment: 'dentist' },
    'Comment value length:1-9 length:1-9 case',
  ],
  [
    'a comment in another normal form',
    { Comment: 'Zo\u00eb' },
    { Comment: 'Zoe\u0308' },
    'Comment value length:1-9 length:1-9 normalised',
  ],
  ['another comment', { Comment: 'dentist' }, { Comment: 'ill' }, 'Comment value length:1-9 length:1-9'],
  ['an empty comment against none', { Comment: '' }, {}, 'Comment null length:0 null'],
  [
    'a comment that is a guid in another case',
    { Comment: guid(0xe, 1).toUpperCase() },
    { Comment: guid(0xe, 1) },
    'Comment value length:21-50 length:21-50 case',
  ],
  [
    'a comment that is a time in another form',
    { Comment: '2026-03-02T09:05:11Z' },
    { Comment: '2026-03-02T09:05:11.0Z' },
    'Comment value length:10-20 length:21-50',
  ],
  ['minutes 0 against none', { MinutesLate: 0 }, {}, 'MinutesLate null number:0 null'],
  ['minutes as text', { MinutesLate: 5 }, { MinutesLate: '5' }, 'MinutesLate type number:1-5 length:1-9'],
  [
    'other minutes',
    { MinutesLate: 5 },
    { MinutesLate: -5.5 },
    'MinutesLate value number:1-5 number:fraction',
  ],
  ['a missing comment', { Comment: 'dentist' }, { Comment: undefined }, 'Comment missing length:1-9 missing'],
  [
    'a comment that V2 lacks',
    { Comment: undefined },
    { Comment: 'dentist' },
    'Comment extra missing length:1-9',
  ],
  ['a boolean as text', {}, { Present: 'true' }, 'Present type boolean length:1-9'],
  ['an unknown member', {}, { 'Ada Lovelace': 'x' }, '(other) extra missing length:1-9'],
  [
    'an unknown member with another value',
    { secret: { Ada: 1 } },
    { secret: { Ada: 2 } },
    '(other) value number:1-5 number:1-5',
  ],
  ['a member that every object has', {}, { constructor: 1 }, '(other) extra missing number:1-5'],
  [
    'a history that V2 lacks',
    {},
    { AttendanceHistorys: [{ ExternalID: guid(1, 1) }] },
    'AttendanceHistorys extra missing element',
  ],
]

const equivalent: readonly (readonly [what: string, v2: Change, v3: Change, found: string])[] = [
  ['another offset', {}, { RecordedOn: '2026-03-02T10:05:11+01:00' }, 'instant-form RecordedOn'],
  ['another precision', {}, { RecordedOn: '2026-03-02T09:05:11.000Z' }, 'instant-form RecordedOn'],
  [
    'digits cut off',
    { RecordedOn: '2026-03-02T09:05:11.9876543Z' },
    { RecordedOn: '2026-03-02T09:05:11.987Z' },
    'instant-form RecordedOn',
  ],
  ['digits rounded away', { RecordedOn: '2026-03-02T09:05:10.5Z' }, {}, 'instant-form RecordedOn'],
  [
    'a guid in another case',
    { Learner: 'ABCDEF00-0000-4000-8000-000000000001' },
    { Learner: 'abcdef00-0000-4000-8000-000000000001' },
    'guid-case Learner',
  ],
  [
    'a code in another case',
    { SchoolAttendanceCode: 'ABCDEF00-0000-4000-8000-000000000001' },
    { SchoolAttendanceCode: 'abcdef00-0000-4000-8000-000000000001' },
    'guid-case SchoolAttendanceCode',
  ],
  ['missing against null', {}, { Comment: undefined }, 'missing-null Comment'],
  [
    'histories left out',
    { AttendanceHistorys: [{ ExternalID: guid(1, 1) }] },
    {},
    'history-left-out AttendanceHistorys',
  ],
  ['no list of histories', {}, { AttendanceHistorys: undefined }, 'history-left-out AttendanceHistorys'],
]

/** As JSON gives it: a member that is undefined is not there. */
const toRow = (change: Change): unknown => JSON.parse(JSON.stringify(markRow(1, change)))

describe('compareMark', () => {
  it.each(differing)('finds %s', (_, v2, v3, found) => {
    const { verdict, differences } = compareMark(toRow(v2), toRow(v3))
    const lines = differences.map(
      ({ path, kind, v2Class, v3Class }) => `${path} ${kind} ${v2Class} ${v3Class}`,
    )
    expect({ verdict, lines }).toEqual({ verdict: 'differs', lines: [found] })
  })

  it.each(equivalent)('accepts %s', (_, v2, v3, found) => {
    const { verdict, differences, equivalences } = compareMark(toRow(v2), toRow(v3))
    const lines = equivalences.map(({ rule, path }) => `${rule} ${path}`)
    expect({ verdict, differences, lines }).toEqual({
      verdict: 'equivalent',
      differences: [],
      lines: [found],
    })
  })

  it('tells times apart that differ within their precision', () => {
    const at = (fraction: string): unknown => toRow({ RecordedOn: `2026-03-02T09:05:11.${fraction}Z` })
    expect(compareMark(at('1234567'), at('1234568')).verdict).toBe('differs')
    expect(compareMark(at('123'), at('124')).verdict).toBe('differs')
    expect(compareMark(at('1236'), at('122')).verdict).toBe('differs')
  })

  it('leaves out control information and members that are not to be compared', () => {
    const v3 = { ...markRow(1, { RecordedOn: null }), '@odata.context': 'x', 'Comment@odata.type': 'y' }
    expect(compareMark(markRow(1), v3, { without: new Set(['RecordedOn']) }).verdict).toBe('same')
  })

  it('counts 5 and 5.0 as the same number, and members in any order', () => {
    const text = JSON.stringify(markRow(1, { MinutesLate: 5 }))
    const other: unknown = JSON.parse(text.replace('"MinutesLate":5', '"MinutesLate":5.0'))
    const reversed = Object.fromEntries(Object.entries(other as object).reverse())
    expect(compareMark(JSON.parse(text), reversed).verdict).toBe('same')
  })

  it.each([
    ['nothing', undefined],
    ['a list', []],
    ['a text', 'x'],
    ['null', null],
  ])('cannot compare %s', (_, row) => {
    expect(compareMark(markRow(1), row).verdict).toBe('unknown')
    expect(compareMark(row, markRow(1)).verdict).toBe('unknown')
  })

  it('cannot compare a document that is too deep, and says so instead of running out of stack', () => {
    const deep: unknown = JSON.parse(`${'['.repeat(50_000)}1${']'.repeat(50_000)}`)
    const other: unknown = JSON.parse(`${'['.repeat(50_000)}2${']'.repeat(50_000)}`)
    expect(compareMark(markRow(1, { Comment: deep }), markRow(1, { Comment: other })).verdict).toBe('unknown')
  })
})
