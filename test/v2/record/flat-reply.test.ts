import { describe, expect, it } from 'vitest'

import { encodeFlatReply, type FlatReply } from '../../../src/v2/record/flat-reply.ts'

const reply: FlatReply = {
  ExternalID: '5f1e7a9d-2c41-4b6f-8cc9-04d64a8b9c3e',
  Present: true,
  Absent: false,
  RecordedOn: '2024-09-05T08:55:00Z',
  ChangeProcessName: 'a "b"',
  AttendableEventStart: '2024-09-05T08:00:00Z',
  RecordedBy: '1a2b3c4d-5e6f-4a7b-8c9d-0e1f2a3b4c5d',
  Learner: '2b6f0cc9-04d6-4a8b-9c3e-5f1e7a9d2c41',
  AttendableEvent: 'a7c1e2d3-5b4f-4e6a-8d7c-9b0a1f2e3d4c',
  SchoolAttendanceCode: '9d8e7f6a-1b2c-4d3e-8f9a-0b1c2d3e4f5a',
  MinutesLate: 5,
  Comment: 'first\r\nsecond \u2028 é',
}
const nothing: FlatReply = {
  ...reply,
  RecordedOn: null,
  ChangeProcessName: null,
  AttendableEventStart: null,
  RecordedBy: null,
  MinutesLate: null,
  Comment: null,
}
const CONTEXT = 'http://adapter.example/V2/Attendance/$metadata#AttendanceRecords/$entity'

describe('encodeFlatReply', () => {
  it.each([reply, nothing])(
    'batch-wire A4: is one line of JSON with the members in the order of the service',
    (flat) => {
      const text = encodeFlatReply(flat, CONTEXT, 'minimal')
      expect(text).not.toMatch(/[\r\n]/)
      expect(text).toBe(JSON.stringify({ '@odata.context': CONTEXT, ...flat, AttendanceHistorys: [] }))
    },
  )

  it('annotates as the record asked', () => {
    const keys = (level: 'none' | 'minimal' | 'full'): string[] =>
      Object.keys(JSON.parse(encodeFlatReply(reply, CONTEXT, level)) as object)
    expect(keys('none')[0]).toBe('ExternalID')
    expect(keys('minimal')[0]).toBe('@odata.context')
    expect(keys('full')[0]).toBe('@odata.type')
    expect(encodeFlatReply(reply, CONTEXT, 'full')).toContain(
      '"@odata.type":"#AttendanceService.Models.OData.AttendanceRecord"',
    )
  })
})
