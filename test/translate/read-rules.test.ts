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
    ['a recorded mark', row, {}, flat],
    ['a mark without a qualifier', { ...row, Qualifier: null }, {}, { ...flat, MinutesLate: null, Comment: null }],
    ['a mark neither present nor absent', { ...row, Present: false }, {}, { ...flat, Present: false }],
    ['a row that nobody recorded', { ...row, RecordedBy: null }, {}, 'unmarked'],
    ['such a row where that does not count', { ...row, RecordedBy: null }, { needsRecordedBy: false }, { ...flat, RecordedBy: null }],
    ['a row without a code', { ...row, AttendanceCode: null }, { needsRecordedBy: false }, 'unmarked'],
    ['a code that means no mark', row, { unmarkedCodes: ['C'] }, 'unmarked'],
    ['a row without a learner', { ...row, Attendee: null }, {}, 'unreadable'],
    ['a row without an event', { ...row, Event: {} }, {}, 'unreadable'],
    ['a row without an id', { ...row, ExternalID: 5 }, {}, 'unreadable'],
    ['no object', [], {}, 'unreadable'],
  ])('%s', (_name, v3, own, expected) => {
    expect(createRowReader({ ...rules, ...own })(v3)).toEqual(expected)
  }) // prettier-ignore
})
