import { describe, expect, it } from 'vitest'

import { encodeRecord, v3ReplySchema, type V3Record, ZERO_GUID } from '../../src/v3/record.ts'

const id = 'ABCDEF01-0000-4000-8000-000000000001'
const isReply = (value: unknown): boolean => v3ReplySchema.safeParse(value).success

describe('the reply to a POST', () => {
  it('takes the reply of service.md 4, and more than that', () => {
    const reply = {
      ExternalID: id,
      Present: true,
      Absent: false,
      RecordedOn: '2026-06-10T10:00:00Z',
      ChangeProcessName: null,
      AttendableEventStart: null,
      RecordedBy: null,
      Attendee: { ExternalID: id, Type: 'Learner.Identifier' },
      Event: { ExternalID: id, Type: null },
      AttendanceCode: { ExternalID: id },
      Qualifier: { MinutesLate: null, Comment: 'x' },
    }
    expect(isReply({ '@odata.context': 'x', ...reply, fabricated: null })).toBe(true)
    expect(isReply({ ExternalID: id })).toBe(true)
  })

  it.each([
    ['nothing', undefined],
    ['null', null],
    ['a list', [{ ExternalID: id }]],
    ['an error', { error: { code: 'x', message: 'y' } }],
    ['no id', { Present: true }],
    ['the zero id', { ExternalID: ZERO_GUID }],
    ['an id in braces', { ExternalID: `{${id}}` }],
    ['an id with a line end', { ExternalID: `${id}\n` }],
    ['a flag that is a text', { ExternalID: id, Present: 'true' }],
    ['a null flag', { ExternalID: id, Absent: null }],
    ['a reference without an id', { ExternalID: id, Attendee: { Type: 'x' } }],
    ['a null reference', { ExternalID: id, Event: null }],
    ['a time that is a number', { ExternalID: id, RecordedOn: 5 }],
    ['minutes over int32', { ExternalID: id, Qualifier: { MinutesLate: 2_147_483_648 } }],
    ['a fraction of minutes', { ExternalID: id, Qualifier: { MinutesLate: 1.5 } }],
    ['a qualifier that is a list', { ExternalID: id, Qualifier: [] }],
  ])('takes no reply with %s', (_what, reply) => {
    expect(isReply(reply)).toBe(false)
  })
})

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
