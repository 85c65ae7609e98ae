import type { FlatReply } from '../../src/v2/index.ts'

/** Builds a mark in the form of V2: present, without a time, an author, minutes or a comment. */
export const flatMark = (own: Partial<FlatReply> = {}): FlatReply => ({
  ExternalID: 'i',
  Present: true,
  Absent: false,
  RecordedOn: null,
  ChangeProcessName: null,
  AttendableEventStart: null,
  RecordedBy: null,
  Learner: 'l',
  AttendableEvent: 'e',
  SchoolAttendanceCode: 'c',
  MinutesLate: null,
  Comment: null,
  ...own,
})
