import { describe, expect, it } from 'vitest'

import { createBatchEncoder, type PartReply } from '../../../src/v2/index.ts'

/** Returns a function that creates the guids …01, …02 and so on. */
function numberedIds(): () => string {
  let count = 0
  return () => `00000000-0000-4000-8000-${String((count += 1)).padStart(12, '0')}`
}
const id = (count: number): string => `00000000-0000-4000-8000-${String(count).padStart(12, '0')}`

const created: PartReply = {
  contentId: '1',
  contentIdInHttp: false,
  changeset: 1,
  status: 201,
  json: '{"Comment":"é"}',
}

describe('createBatchEncoder', () => {
  it.each(['flat', 'nested'] as const)(
    'writes the Location of a created record in the layout %s (batch-wire A8)',
    (layout) => {
      const encoder = createBatchEncoder(
        layout,
        numberedIds(),
        false,
        'http://a/V2/Attendance/AttendanceRecords',
      )
      const json = (text: string): string =>
        `{"@odata.context":"http://a/","ExternalID":"${text}","Comment":"\\"ExternalID\\":\\"${id(9)}\\""}`
      const location = `Location: http://a/V2/Attendance/AttendanceRecords(${id(7)})\r\n`
      expect(encoder.part({ ...created, json: json(id(7)) })).toContain(`HTTP/1.1 201 Created\r\n${location}`)
      expect(encoder.part({ ...created, json: `{"d":${json(id(7))}}` })).toContain(location)
      for (const other of [
        { status: 400, json: json(id(7)) },
        { status: 204, json: undefined },
        { json: json('x') },
      ])
        expect(encoder.part({ ...created, ...other })).not.toContain('Location')
    },
  )

  it('writes a reason phrase for a status that HTTP does not define', () => {
    expect(createBatchEncoder('flat', numberedIds()).part({ ...created, status: 599 })).toContain(
      '\r\nHTTP/1.1 599 Unknown\r\n',
    )
  })
})
