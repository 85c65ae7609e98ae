import { describe, expect, it } from 'vitest'

import { toV3RegistrationQuery } from '../../src/translate/index.ts'
import {
  metadataTypes,
  readGuidKey,
  writeLegacyMetadata,
  writeLegacyServiceDocument,
} from '../../src/translate/read-targets.ts'

const id = '41dba12f-bcce-470b-8ce4-b260ffb62649'

it.each([
  `/V2/Attendance/AttendanceRecords(${id})`,
  `/V2/Attendance/AttendanceRecords(${id})/`,
  `/V2/LearnerRegistations( ${id} )`,
  `/V2/LearnerRegistations('${id}')`,
  `/V2/LearnerRegistations(ExternalID=${id})`,
])('reads the guid of %s', (path) => {
  expect(readGuidKey(path)).toBe(id)
})

it.each([
  ['no key', '/V2/Attendance/AttendanceRecords'],
  ['nothing', ''],
  ['an empty key', '/V2/Attendance/AttendanceRecords()'],
  ['another name', `/V2/Attendance/AttendanceRecords(Id=${id})`],
  ['two parts', `/V2/Attendance/AttendanceRecords(ExternalID=${id},B=1)`],
  ['a number', '/V2/Attendance/AttendanceRecords(5)'],
  ['a parameter', '/V2/Attendance/AttendanceRecords(@id)'],
  ['an open parenthesis', `/V2/Attendance/AttendanceRecords(${id}`],
])('reads no guid where a path has %s', (_what, path) => {
  expect(readGuidKey(path)).toBeUndefined()
})

describe('toV3RegistrationQuery', () => {
  it.each([
    ['', ''],
    ['expand=Enrolments', '$expand=Enrolments($expand=EnrolmentStatuses)'],
    [
      '$expand=Enrolments,BoarderStatuses,PartTimeRecords,UPNHistory&top=5',
      '$top=5&$expand=Enrolments($expand=EnrolmentStatuses),BoarderStatuses,PartTimeRecords,UPNHistory',
    ],
    ['expand=Enrolments($top=1)', '$expand=Enrolments($top=1)'],
    ["filter=AdmissionNumber eq '1'&own=1", "$filter=AdmissionNumber eq '1'"],
  ])('%s', (v2, v3) => {
    expect(decodeURIComponent(toV3RegistrationQuery(v2))).toBe(v3)
  })

  it('refuses what cannot be read', () => {
    expect(() => toV3RegistrationQuery('expand=(')).toThrow('$expand, character 0')
  })
})

it('describes the flat type in XML and in JSON', () => {
  const [xml, json] = metadataTypes.map(writeLegacyMetadata)
  expect(xml).toContain('<Schema Namespace="AttendanceService.Models.OData"')
  const document = JSON.parse(json ?? '') as object
  expect(Object.keys(document)).toContain('AttendanceService.Models.OData')
})

it('writes the service document with a context or without one', () => {
  const url = 'https://adapter.example/V2/Attendance/$metadata'
  const value = [expect.objectContaining({ name: 'AttendanceRecords' })] as unknown
  expect(JSON.parse(writeLegacyServiceDocument(url))).toEqual({ '@odata.context': url, value })
  expect(JSON.parse(writeLegacyServiceDocument(undefined))).toEqual({ value })
})
