import { describe, expect, it } from 'vitest'

import { v3ReplySchema, ZERO_GUID } from '../../../src/v3/record/v3-record.ts'

const id = 'ABCDEF01-0000-4000-8000-000000000001'

describe('v3ReplySchema', () => {
  it('takes the reply of service.md 4 and leaves out what it does not know', () => {
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
    expect(v3ReplySchema.parse({ '@odata.context': 'x', ...reply, fabricated: null })).toEqual(reply)
    expect(v3ReplySchema.parse({ ExternalID: id })).toEqual({ ExternalID: id })
  })

  const refused: [name: string, reply: unknown][] = [
    ['nothing', undefined],
    ['null', null],
    ['an array', [{ ExternalID: id }]],
    ['no id', { Present: true }],
    ['a null id', { ExternalID: null }],
    ['the zero guid', { ExternalID: ZERO_GUID }],
    ['an id that is no guid', { ExternalID: `{${id}}` }],
    ['an id with more after it', { ExternalID: `${id}\n` }],
    ['a boolean as text', { ExternalID: id, Present: 'true' }],
    ['a null boolean', { ExternalID: id, Absent: null }],
    ['a flat reference', { ExternalID: id, Attendee: id }],
    ['a null reference', { ExternalID: id, Event: null }],
    ['minutes that are no int32', { ExternalID: id, Qualifier: { MinutesLate: 2_147_483_648 } }],
    ['minutes as text', { ExternalID: id, Qualifier: { MinutesLate: '5' } }],
    ['an error', { error: { code: 'x', message: 'y' } }],
  ]
  it.each(refused)('does not take %s for an answer', (_name, reply) => {
    expect(v3ReplySchema.safeParse(reply).success).toBe(false)
  })
})
