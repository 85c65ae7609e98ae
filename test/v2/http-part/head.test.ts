import { describe, expect, it } from 'vitest'

import { checkTarget, type PartHead, readHead } from '../../../src/v2/http-part/head.ts'
import { readHeaders } from '../../../src/v2/http-part/headers.ts'
import { defaultBatchLimits } from '../../../src/v2/limits.ts'
import { crlf } from '../support/crlf.ts'
import { faultOf } from '../support/fault-of.ts'

const limits = { ...defaultBatchLimits, maxPartHeaderBytes: 300 }
const LINE = 'POST AttendanceRecords HTTP/1.1\n'

/** The head of a part of MIME headers `mime` and the HTTP request `http`; bodyStart counted from the request. */
function read(mime: string, http: string): PartHead {
  const bytes = crlf(`${mime}\n${http}`)
  const block = readHeaders(bytes, 0, bytes.length, limits, {})
  const options = { limits, serviceHosts: undefined }
  const head = readHead(bytes, block.lines, block.end, bytes.length, options, { part: 5 })
  return { ...head, bodyStart: head.bodyStart - block.end }
}

const plain: PartHead = {
  method: 'POST',
  target: 'collection',
  charset: undefined,
  prefersMinimal: false,
  metadata: 'minimal',
  contentId: undefined,
  contentIdInHttp: false,
  bodyStart: 35,
  closed: true,
}

describe('readHead', () => {
  const rows: [what: string, mime: string, http: string, head: Partial<PartHead>][] = [
    ['a request without headers', '', `${LINE}\n{}`, {}],
    ['F14: binary in any case', 'Content-Transfer-Encoding: BINARY\n', `${LINE}\n{}`, {}],
    ['F16: the id among the MIME headers', 'Content-ID: 1\n', `${LINE}\n{}`, { contentId: '1' }],
    ['F16: the id among the HTTP headers', '', `${LINE}CONTENT-id:0.0\n\n{}`, { contentId: '0.0', contentIdInHttp: true, bodyStart: 51 }],
    ['F16: the id in both places', 'Content-ID: <é>\n', `${LINE}Content-ID: <é>\n\n`, { contentId: '<é>', contentIdInHttp: true, bodyStart: 53 }],
    ['F16: an empty id is none', 'Content-ID:\n', `${LINE}\n{}`, {}],
    ['F17: blank lines before the request line', '', `\n\n\n${LINE}\n{}`, { bodyStart: 41 }],
    ['F17: a second blank line is body', '', `${LINE}\n\n{}`, {}],
    ['F19: a wrong Content-Length', '', `${LINE}Content-Length: many\n\n{}`, { bodyStart: 57 }],
    ['F21: blanks and tabs in the request line', '', `POST \tAttendanceRecords \t HTTP/1.0 \n\n{}`, { bodyStart: 39 }],
    ['F22: another method', '', `PATCH AttendanceRecords(1) HTTP/1.1\n\n`, { method: 'PATCH', target: 'entity', bodyStart: 39 }],
    ['F22: a request that ends with its headers', '', LINE, { bodyStart: 33, closed: false }],
    ['F22: a request without line end', '', LINE.trimEnd(), { bodyStart: 31, closed: false }],
    ['A4: return=minimal', '', `${LINE}Prefer: x, Return = "minimal"\n\n`, { prefersMinimal: true, bodyStart: 66 }],
    ['A4: return=representation', '', `${LINE}Prefer: return=representation\n\n`, { bodyStart: 66 }],
    ['metadata in Accept', '', `${LINE}Accept: application/json;ODATA.metadata=Full\n\n`, { metadata: 'full', bodyStart: 81 }],
    ['no metadata in Accept', '', `${LINE}Accept: a/b, application/json; odata.metadata="none"\n\n`, { metadata: 'none', bodyStart: 89 }],
  ] // prettier-ignore
  it.each(rows)('reads %s', (_, mime, http, head) => {
    expect(read(mime, http)).toEqual({ ...plain, ...head })
  })

  const charsets: [value: string, charset: PartHead['charset']][] = [
    ['application/json', undefined],
    ['application/json; charset=utf-8', undefined],
    ['application/json; CHARSET="UTF8"', undefined],
    ['application/json;charset=us-ascii', undefined],
    ['application/json;charset=ISO-8859-1', 'latin1'],
    ['application/json;charset=latin1', 'latin1'],
    ['application/json;charset=windows-1252', 'windows-1252'],
    ['application/json;charset=cp1250', 'windows-1250'],
    ['application/json;charset=iso-8859-15', 'iso-8859-15'],
    ['application/json;charset=koi8-r', 'koi8-r'],
    ['application/json;charset=utf-16', 'other'],
    ['application/json;charset=shift_jis', 'other'],
    ['application/json;charset=x-user-defined', 'other'],
    ['application/json;charset=no-such', 'other'],
    ['application/json;charset="', 'other'],
    ['text/charset', undefined],
  ]
  it.each(charsets)('batch-wire F26: Content-Type %j', (value, charset) => {
    expect(read('', `${LINE}Content-Type: ${value}\n\n{}`).charset).toBe(charset)
  })

  const refused: [what: string, mime: string, http: string, code: string][] = [
    ['F14: base64', 'Content-Transfer-Encoding: base64\n', LINE, 'ADP_PART_ENCODING'],
    ['F14: binary and 8bit', 'Content-Transfer-Encoding: binary\nContent-Transfer-Encoding: 8bit\n', LINE, 'ADP_PART_ENCODING'],
    ['F16: two ids in two places', 'Content-ID: 1\n', `${LINE}Content-ID: 2\n\n{}`, 'ADP_CONTENT_ID'],
    ['F16: two ids in one place', 'Content-ID: 1\nContent-ID: 2\n', `${LINE}\n{}`, 'ADP_CONTENT_ID'],
    ['F16: an id that is not UTF-8', 'Content-ID: \ufffd\n', `${LINE}\n{}`, 'ADP_CONTENT_ID'],
    ['F18: JSON for a request line', '', '{}', 'ADP_REQUEST_LINE'],
    ['F18: nothing for a request line', '', '\n\n', 'ADP_REQUEST_LINE'],
    ['F18: a request line without version', '', 'POST AttendanceRecords\n\n', 'ADP_REQUEST_LINE'],
    ['F21: a control character in the target', '', 'POST Attendance\u0001Records HTTP/1.1\n\n', 'ADP_REQUEST_LINE'],
    ['F21: a path outside', '', 'POST Learners HTTP/1.1\n\n', 'ADP_TARGET'],
    ['F27: a long request line', '', `POST AttendanceRecords?${'x'.repeat(300)} HTTP/1.1\n\n`, 'ADP_LIMIT'],
    ['F15: an HTTP header without colon', '', `${LINE}nothing\n\n`, 'ADP_HEADER'],
  ] // prettier-ignore
  it.each(refused)('refuses %s', (_, mime, http, code) => {
    const fault = faultOf(() => read(mime, http))
    expect({ code: fault.code, part: fault.at.part }).toEqual({ code, part: 5 })
  })
})

const hosts = new Set(['service.example', '::1'])

describe('checkTarget', () => {
  const accepted: [target: string, kind: string][] = [
    ['AttendanceRecords', 'collection'],
    ['/AttendanceServiceFarm1/OData/V1/AttendanceRecords', 'collection'],
    ['AttendanceServiceFarm1/OData/V1/attendancerecords?a=../b', 'collection'],
    ['http://service.example/x/AttendanceRecords', 'collection'],
    ['HTTPS://SERVICE.example:8443/x/AttendanceRecords#f', 'collection'],
    ['Attendance%52ecords', 'collection'],
    ['AttendanceRecords(1d0f6e2c-7a3b-4c5d-8e9f-a0b1c2d3e4f5)', 'entity'],
    ['./AttendanceRecords', 'collection'],
    ['/a..b/AttendanceRecords', 'collection'],
    ['/a/AttendanceRecords/', 'collection'],
    ['http://service.example/x/AttendanceRecords/?a=b', 'collection'],
  ]
  it.each(accepted)('batch-wire F21: accepts %j as %s', (target, kind) => {
    expect(checkTarget(target, hosts, {})).toBe(kind)
  })

  const refused = [
    '/Learners', 'AttendanceRecords//', 'AttendanceRecords(1', 'XAttendanceRecords', '', '*',
    '../AttendanceRecords', '/a/../AttendanceRecords', '/a/%2e%2E/AttendanceRecords', '/a/%252e%252e/AttendanceRecords',
    '/a%5c..%5cAttendanceRecords', '/a\\AttendanceRecords', '%', '%25', '%c0%af/AttendanceRecords',
    '//other.example/AttendanceRecords', 'http://other.example/AttendanceRecords', 'ftp://service.example/AttendanceRecords',
    'http://service.example@other.example/AttendanceRecords', 'http://', 'http://service.example:x/AttendanceRecords',
    'http://service.example/a/../AttendanceRecords', 'http://service.example', 'file:///AttendanceRecords',
    'http://service.example\\..\\AttendanceRecords', 'http://service.example?x=/AttendanceRecords',
  ] // prettier-ignore
  it.each(refused)('batch-wire F21: refuses %j', (target) => {
    expect(faultOf(() => checkTarget(target, hosts, { part: 4 }))).toEqual({
      code: 'ADP_TARGET',
      at: { part: 4 },
    })
  })

  it.each([
    'https://who:hidden@service.example/x/AttendanceRecords',
    'https://hidden@service.example/x/AttendanceRecords',
    'https://@service.example/AttendanceRecords',
    'https:/who:hidden@service.example/AttendanceRecords',
    'https://who:hid%40den@service.example/AttendanceRecords(1d0f6e2c-7a3b-4c5d-8e9f-a0b1c2d3e4f5)',
  ])('batch-wire F21: refuses the credentials of %j, and does not repeat them', (target) => {
    for (const known of [hosts, undefined]) {
      const check = (): unknown => checkTarget(target, known, { part: 4 })
      expect(faultOf(check)).toEqual({ code: 'ADP_TARGET', at: { part: 4 } })
      expect(check).toThrow(/^The request line of a part has credentials in its URL(?!.*hid)/)
    }
  })

  it('batch-wire F21: takes "@" behind the host for what it is', () => {
    expect(checkTarget('https://service.example/a@b/AttendanceRecords?c@d', hosts, {})).toBe('collection')
  })

  it.each(['https://old.example/AttendanceRecords', 'http://[::1]:4010/x/AttendanceRecords/'])(
    'batch-wire F21: accepts the host of %j where none is configured',
    (target) => {
      expect(checkTarget(target, undefined, {})).toBe('collection')
    },
  )

  it.each([
    'https://old.example/Learners',
    'https://old.example/../AttendanceRecords',
    '//old.example/AttendanceRecords',
  ])('batch-wire F21: refuses the path of %j whatever its host', (target) => {
    expect(faultOf(() => checkTarget(target, undefined, {})).code).toBe('ADP_TARGET')
  })
})
