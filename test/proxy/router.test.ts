import { expect, it } from 'vitest'

import { exchange } from '../support/raw-client.ts'
import { startAdapter } from '../support/start-adapter.ts'

it.each([
  ['HEAD /healthz', 200],
  ['GET /readyz', 200],
  ['GET /V2/Attendance/$batch', 405],
  ['OPTIONS /V2/Attendance/$batch', 405],
  ['POST /V2/Attendance/$batch', 401],
  ['POST /%20x/v2/ATTENDANCE/%24Batch/', 400],
  ['POST /x%20y/v2/ATTENDANCE/%24Batch/', 401],
  ['POST http://other.test/V2/Attendance/$batch', 401],
  ['POST /V2/Attendance/AttendanceRecords', 401],
  ['POST /%zz/V2/Attendance/attendancerecords?x', 400],
  ['GET /V2/Attendance/AttendanceRecords', 401],
  ['PUT /V2/Attendance/AttendanceRecords', 405],
  ['GET /x/v2/attendance/attendancerecords(1)', 401],
  ['POST /V2/Attendance/AttendanceRecords%281%29', 405],
  ['GET /V2/Attendance/%24metadata', 401],
  ['POST /V2/Attendance/$metadata', 405],
  ['GET /V2/Attendance', 401],
  ['GET /V2/LearnerRegistations', 401],
  ['DELETE /V2/LearnerRegistations', 405],
  // No route matches these paths, so the pass-through refuses the method.
  ['POST /V2/Attendance/$batches', 405],
  ['POST /V2/Attendance$batch', 405],
  ['GET /%zz', 400],
  ['POST /metrics', 405],
  ['TRACE /healthz', 405],
  ['TRACE /V2/Attendance/$batch', 405],
])('the adapter, for %s without credentials, returns the status %i', async (start, status) => {
  const adapter = await startAdapter('http://127.0.0.1:1')
  const reply = await exchange(adapter.port, `${start} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
  expect(reply).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
})
