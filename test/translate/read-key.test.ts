import { expect, it } from 'vitest'

import { readGuidKey } from '../../src/translate/read-key.ts'

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
