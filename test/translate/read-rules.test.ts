import { describe, expect, it } from 'vitest'

import { createRowReader, type ReadRules } from '../../src/translate/index.ts'

const rules: ReadRules = {
  needsRecordedBy: true,
  unmarkedCodes: [],
  histories: false,
}
const row = {
  ExternalID: 'i',
  Present: true,
  Absent: false,
  RecordedOn: '2026-03-02T09:01:00Z',
  ChangeProcessName: 'Register',
  AttendableEventStart: '2026-03-02T09:00:00Z',
  RecordedBy: { ExternalID: 'u', Type: 'AuthorisedUser' },
  Attendee: { ExternalID: 'l', Type: 'Learner.Identifier' },
  Event: { ExternalID: 'e', Type: 'Attendance.AttendanceSession' },
  AttendanceCode: { ExternalID: 'c', Type: 'Attendance.Lookup' },
  Qualifier: { MinutesLate: 5, Comment: 'late' },
}
const flat = {
  ExternalID: 'i',
  Present: true,
  Absent: false,
  RecordedOn: '2026-03-02T09:01:00Z',
  ChangeProcessName: 'Register',
  AttendableEventStart: '2026-03-02T09:00:00Z',
  RecordedBy: 'u',
  Learner: 'l',
  AttendableEvent: 'e',
  SchoolAttendanceCode: 'c',
  MinutesLate: 5,
  Comment: 'late',
}

describe('createRowReader', () => {
  it.each([
    ['a recorded mark as a flat record', row, {}, flat],
    ['a mark without a qualifier as a flat record with nulls', { ...row, Qualifier: null }, {}, { ...flat, MinutesLate: null, Comment: null }],
    ['a mark that is neither present nor absent as it is', { ...row, Present: false }, {}, { ...flat, Present: false }],
    ['a row that nobody recorded as unmarked', { ...row, RecordedBy: null }, {}, 'unmarked'],
    ['a row that nobody recorded as a mark if RecordedBy is not needed', { ...row, RecordedBy: null }, { needsRecordedBy: false }, { ...flat, RecordedBy: null }],
    ['a row without a code as unmarked', { ...row, AttendanceCode: null }, { needsRecordedBy: false }, 'unmarked'],
    ['a row whose code means no mark as unmarked', row, { unmarkedCodes: ['C'] }, 'unmarked'],
    ['a row without a learner as unreadable', { ...row, Attendee: null }, {}, 'unreadable'],
    ['a row without an event as unreadable', { ...row, Event: {} }, {}, 'unreadable'],
    ['a row without an id as unreadable', { ...row, ExternalID: 5 }, {}, 'unreadable'],
    ['a row that is not an object as unreadable', [], {}, 'unreadable'],
  ])('reads %s', (_name, v3, own, expected) => {
    expect(createRowReader({ ...rules, ...own })(v3)).toEqual(expected)
  }) // prettier-ignore
})
