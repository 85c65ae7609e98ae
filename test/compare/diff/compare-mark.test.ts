import { describe, expect, it } from 'vitest'

import { compareMark } from '../../../src/compare/diff/compare-mark.ts'
import { guid, markRow } from './mark-rows.ts'

const TIME = '2026-03-02T09:05:11Z'
const START = '2026-03-02T08:45:00Z'
const [CODE, LEARNER, LETTERS] = [guid(0xe, 1), guid(0xc, 1), 'abcdef00-0000-4000-8000-000000000001']
const history = [{ ExternalID: guid(1, 1) }]

/** A member, the expected finding, and the values on V2 and V3. `undefined` means that the side lacks the member. */
type Row = readonly [member: string, found: string, v2: unknown, v3: unknown]

const differing: readonly Row[] = [
  ['RecordedOn', 'value time time:+3600s', TIME, '2026-03-02T10:05:11Z'],
  ['RecordedOn', 'value time time:-1-60s', TIME, '2026-03-02T09:05:04Z'],
  ['RecordedOn', 'value time length:10-20', TIME, '2026-03-02T09:05:11'],
  ['AttendableEventStart', 'value time time:+>7d', START, '2026-04-02T08:45:00Z'],
  // The class of a code comes from `Present` and `Absent` of its mark, so two different codes have the same class here.
  ['SchoolAttendanceCode', 'value code:present code:present', CODE, guid(0xe, 2)],
  ['SchoolAttendanceCode', 'type guid number:6-15', CODE, 7],
  ['Learner', 'value guid guid', LEARNER, guid(0xc, 99)],
  ['Comment', 'value length:21-50 length:10-20 cut', 'Came in with his mother', 'Came in with'],
  ['Comment', 'value length:1-9 length:1-9 trimmed', ' dentist ', 'dentist'],
  ['Comment', 'value length:1-9 length:1-9 case', 'Dentist', 'dentist'],
  ['Comment', 'value length:1-9 length:1-9 normalised', 'Zo\u00eb', 'Zoe\u0308'],
  ['Comment', 'value length:1-9 length:1-9', 'dentist', 'ill'],
  ['Comment', 'null length:0 null', '', null],
  // Text that a person wrote is never classified as a GUID or a time.
  ['Comment', 'value length:21-50 length:21-50 case', LETTERS.toUpperCase(), LETTERS],
  ['Comment', 'value length:10-20 length:21-50', TIME, '2026-03-02T09:05:11.0Z'],
  ['Comment', 'missing length:1-9 missing', 'dentist', undefined],
  ['Comment', 'extra missing length:1-9', undefined, 'dentist'],
  ['MinutesLate', 'null number:0 null', 0, null],
  ['MinutesLate', 'type number:1-5 length:1-9', 5, '5'],
  ['MinutesLate', 'value number:1-5 number:fraction', 5, -5.5],
  ['Present', 'type boolean length:1-9', true, 'true'],
  ['AttendanceHistorys', 'extra missing element', [], history],
  ['Ada Lovelace', 'extra missing length:1-9', undefined, 'x'],
  ['secret', 'value number:1-5 number:1-5', { Ada: 1 }, { Ada: 2 }],
  ['constructor', 'extra missing number:1-5', undefined, 1],
]

const equivalent: readonly Row[] = [
  ['RecordedOn', 'instant-form', TIME, '2026-03-02T10:05:11+01:00'],
  ['RecordedOn', 'instant-form', TIME, '2026-03-02T09:05:11.000Z'],
  // In the first of these rows V3 cut digits off, and in the second V3 rounded them.
  ['RecordedOn', 'instant-form', '2026-03-02T09:05:11.9876543Z', '2026-03-02T09:05:11.987Z'],
  ['RecordedOn', 'instant-form', '2026-03-02T09:05:10.5Z', TIME],
  ['Learner', 'guid-case', LETTERS.toUpperCase(), LETTERS],
  ['SchoolAttendanceCode', 'guid-case', LETTERS.toUpperCase(), LETTERS],
  ['Comment', 'missing-null', undefined, null],
  ['AttendanceHistorys', 'history-left-out', history, []],
  ['AttendanceHistorys', 'missing-null', undefined, []],
]

/** Returns a row as JSON would: members that are `undefined` are absent. */
const toRow = (change: Readonly<Record<string, unknown>>): unknown =>
  JSON.parse(JSON.stringify(markRow(1, change)))

/** Returns false for a name that the model of the service does not define, which is never shown. */
const isShown = (member: string): boolean => Object.hasOwn(markRow(1), member)

describe('compareMark', () => {
  it.each(differing)('reports the difference in %s as: %s', (member, found, v2, v3) => {
    const { verdict, differences } = compareMark(toRow({ [member]: v2 }), toRow({ [member]: v3 }))
    const lines = differences.map(
      ({ path, kind, v2Class, v3Class }) => `${path} ${kind} ${v2Class} ${v3Class}`,
    )
    const path = isShown(member) ? member : '(other)'
    expect({ verdict, lines }).toEqual({ verdict: 'differs', lines: [`${path} ${found}`] })
  })

  it.each(equivalent)(
    'accepts a difference in %s by the rule %s between the values %j and %j',
    (member, rule, v2, v3) => {
      expect(compareMark(toRow({ [member]: v2 }), toRow({ [member]: v3 }))).toEqual({
        verdict: 'equivalent',
        differences: [],
        equivalences: [{ rule, path: member }],
      })
    },
  )

  it('reports a difference between times that differ by one unit of their precision', () => {
    const at = (fraction: string): unknown => toRow({ RecordedOn: `2026-03-02T09:05:11.${fraction}Z` })
    expect(compareMark(at('1234567'), at('1234568')).verdict).toBe('differs')
    expect(compareMark(at('123'), at('124')).verdict).toBe('differs')
    expect(compareMark(at('1236'), at('122')).verdict).toBe('differs')
  })

  it('ignores control information and excluded members', () => {
    const v3 = { ...markRow(1, { RecordedOn: null }), '@odata.context': 'x', 'Comment@odata.type': 'y' }
    expect(compareMark(markRow(1), v3, { without: new Set(['RecordedOn']) }).verdict).toBe('same')
  })

  it('treats 5 and 5.0 as equal, and ignores the order of members', () => {
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
  ])('returns the verdict "unknown" for %s in place of a mark', (_, row) => {
    expect(compareMark(markRow(1), row).verdict).toBe('unknown')
    expect(compareMark(row, markRow(1)).verdict).toBe('unknown')
  })

  it('returns the verdict "unknown" for a document that is nested too deeply, without exhausting the stack', () => {
    const deep: unknown = JSON.parse(`${'['.repeat(50_000)}1${']'.repeat(50_000)}`)
    const other: unknown = JSON.parse(`${'['.repeat(50_000)}2${']'.repeat(50_000)}`)
    expect(compareMark(markRow(1, { Comment: deep }), markRow(1, { Comment: other })).verdict).toBe('unknown')
  })
})
