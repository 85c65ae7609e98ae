import { describe, expect, it } from 'vitest'

import { createBatchEncoder, encodeMismatch, type PartReply } from '../../../src/v2/batch/encode-batch.ts'
import { crlf } from '../support/crlf.ts'
import { readMultipart } from '../support/read-multipart.ts'

/** Guids that can be told apart: …01, …02 and so on, in the order of their making. */
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

function encode(layout: 'flat' | 'nested', replies: PartReply[], changesets: number): string {
  const encoder = createBatchEncoder(layout, numberedIds())
  return replies.map((reply) => encoder.part(reply)).join('') + encoder.close(changesets)
}

const HEAD = 'Content-Type: application/http\nContent-Transfer-Encoding: binary\n'
const JSON_TYPE = 'Content-Type: application/json; odata.metadata=minimal\n'

describe('createBatchEncoder', () => {
  it.each(['flat', 'nested'] as const)('batch-wire A1: names the boundary of a %s reply', (layout) => {
    const { contentType } = createBatchEncoder(layout, numberedIds())
    expect(contentType).toBe(`multipart/mixed; boundary=batchresponse_${id(1)}`)
  })

  it('batch-wire A2 to A4: writes a flat reply', () => {
    const replies: PartReply[] = [
      created,
      { ...created, contentId: 'b', contentIdInHttp: true, status: 400, json: '[]' },
      { ...created, contentId: undefined, status: 405 },
    ]
    expect(encode('flat', replies, 1)).toBe(
      crlf(
        `--batchresponse_${id(1)}\n${HEAD}Content-ID: 1\n\nHTTP/1.1 201 Created\n${JSON_TYPE}Content-Length: 16\n\n{"Comment":"é"}\n` +
          `--batchresponse_${id(1)}\n${HEAD}Content-ID: b\n\nHTTP/1.1 400 Bad Request\nContent-ID: b\n${JSON_TYPE}Content-Length: 2\n\n[]\n` +
          `--batchresponse_${id(1)}\n${HEAD}\nHTTP/1.1 405 Method Not Allowed\n${JSON_TYPE}Content-Length: 16\n\n{"Comment":"é"}\n` +
          `--batchresponse_${id(1)}--\n`,
      ).toString(),
    )
  })

  it.each(['flat', 'nested'] as const)(
    'protocol A8: gives created records their address, layout %s',
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

  it('batch-wire A4: closes the headers of an answer without a body', () => {
    const reply = { ...created, contentIdInHttp: true, status: 204, json: undefined }
    expect(encode('flat', [reply], 1)).toBe(
      crlf(
        `--batchresponse_${id(1)}\n${HEAD}Content-ID: 1\n\nHTTP/1.1 204 No Content\nContent-ID: 1\n\n\n` +
          `--batchresponse_${id(1)}--\n`,
      ).toString(),
    )
  })

  it('batch-wire A6: puts the parts of each changeset into a part of their own', () => {
    const replies: PartReply[] = [
      { ...created, changeset: undefined, contentId: 'a' },
      { ...created, changeset: 2, contentId: 'b' },
      { ...created, changeset: 2, contentId: 'c' },
      { ...created, changeset: undefined, contentId: 'd' },
      { ...created, changeset: 3, contentId: 'e' },
    ]
    const body = encode('nested', replies, 4)
    const outer = readMultipart(body, `batchresponse_${id(1)}`)
    const ids = outer.map(({ headers, content }) => {
      const inner = /boundary=(.*)/.exec(headers['Content-Type'] ?? '')?.[1]
      return inner === undefined
        ? headers['Content-ID']
        : [inner, ...readMultipart(content, inner).map((part) => part.headers['Content-ID'])]
    })
    expect(ids).toEqual([
      'a',
      [`changesetresponse_${id(2)}`],
      [`changesetresponse_${id(3)}`, 'b', 'c'],
      'd',
      [`changesetresponse_${id(4)}`, 'e'],
      [`changesetresponse_${id(5)}`],
    ])
  })

  it('batch-wire F11: answers an empty batch with an empty batch response', () => {
    expect(encode('flat', [], 0)).toBe(`--batchresponse_${id(1)}--\r\n`)
    expect(encode('nested', [], 0)).toBe(`--batchresponse_${id(1)}--\r\n`)
  })

  it.each(['flat', 'nested'] as const)(
    'says msgtype=response on each part where a partner wants it: %s',
    (layout) => {
      const plain = encode(layout, [created, created], 1)
      const encoder = createBatchEncoder(layout, numberedIds(), true)
      expect(encoder.part(created) + encoder.part(created) + encoder.close(1)).toBe(
        plain.replaceAll('application/http\r\n', 'application/http; msgtype=response\r\n'),
      )
    },
  )

  it('names a status that HTTP does not know', () => {
    expect(encode('flat', [{ ...created, status: 599 }], 1)).toContain('\r\nHTTP/1.1 599 Unknown\r\n')
  })
})

describe('encodeMismatch', () => {
  it('batch-wire 3: is a batch response with one empty changeset response', () => {
    expect(encodeMismatch(numberedIds())).toEqual({
      contentType: `multipart/mixed; boundary=batchresponse_${id(1)}`,
      body: crlf(
        `--batchresponse_${id(1)}\nContent-Type: multipart/mixed; boundary=changesetresponse_${id(2)}\n\n` +
          `--changesetresponse_${id(2)}--\n--batchresponse_${id(1)}--\n`,
      ).toString(),
    })
  })
})
