import { describe, expect, it } from 'vitest'

import { checkTarget } from '../../../src/v2/http-part/target.ts'
import { faultOf } from '../support/fault-of.ts'

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
