import { describe, expect, it } from 'vitest'

import { encodeRecord, type V3Record } from '../../../src/v3/index.ts'

const whole: V3Record = {
  ExternalID: '00000000-0000-0000-0000-000000000000',
  Present: true,
  Absent: false,
  RecordedOn: '2026-06-10T10:00:00Z',
  ChangeProcessName: 'Own "name"',
  AttendableEventStart: '2026-06-10T08:00:00Z',
  RecordedBy: { ExternalID: 'u', Type: 'AuthorisedUser' },
  Attendee: { ExternalID: 'a', Type: 'Learner.Identifier' },
  Event: { ExternalID: 'e', Type: null },
  AttendanceCode: { ExternalID: 'c' },
  Qualifier: { MinutesLate: -5, Comment: 'line\n"\u2028\ud800' },
}

describe('encodeRecord', () => {
  it('service.md 2.10: writes the full body, members in the order of the service', () => {
    expect(encodeRecord(whole, 'full')).toBe(JSON.stringify(whole))
  })

  it('service-facts 6: writes the published minimum', () => {
    const { Attendee, Event, AttendanceCode, Qualifier } = whole
    expect(encodeRecord(whole, 'minimal')).toBe(
      JSON.stringify({ Attendee, Event, AttendanceCode, Qualifier }),
    )
  })

  const changes: [name: string, change: Partial<V3Record>][] = [
    ['nulls', { RecordedOn: null, ChangeProcessName: null, AttendableEventStart: null, RecordedBy: null }],
    ['missing members', { RecordedOn: undefined, ChangeProcessName: undefined, AttendableEventStart: undefined, RecordedBy: undefined }],
    ['an empty qualifier', { Qualifier: { MinutesLate: undefined, Comment: undefined } }],
    ['a qualifier of nulls', { Qualifier: { MinutesLate: null, Comment: null } }],
    ['MinutesLate alone', { Qualifier: { MinutesLate: 2_147_483_647, Comment: undefined } }],
    ['Comment alone', { Qualifier: { MinutesLate: undefined, Comment: '' } }],
  ] // prettier-ignore
  it.each(changes)('keeps null and missing apart: %s', (_name, change) => {
    const record = { ...whole, ...change }
    expect(encodeRecord(record, 'full')).toBe(JSON.stringify(record))
  })
})
