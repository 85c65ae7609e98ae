import { expect, test } from 'vitest'

import { findRoute } from '../../../src/sandbox/http/request.ts'

test.each([
  ['/V3/LearnerIdentifiers', 'Learner', 3, '/V3', ['LearnerIdentifiers']],
  ['/Learner/v3/LearnerGroups', 'Learner', 3, '/Learner/v3', ['LearnerGroups']],
  ['/a/b/Learner/odata/V3/X', 'Learner', 3, '/a/b/Learner/odata/V3', ['X']],
  ['/V2/LearnerRegistations/', 'Learner', 2, '/V2', ['LearnerRegistations']],
  ['/Attendance/V3/AttendanceRecords', 'Attendance', 3, '/Attendance/V3', ['AttendanceRecords']],
  ['/p/V2/aTTENDANCE/%24batch', 'Attendance', 2, '/p/V2/aTTENDANCE', ['$batch']],
  ['/AttendanceServiceFarm1/OData/V1/A', 'Attendance', 1, '/AttendanceServiceFarm1/OData/V1', ['A']],
  ['/V3', 'Learner', 3, '/V3', []],
  ['/V3/', 'Learner', 3, '/V3', []],
  ['/%c3%a9/%562/%41ttendance/X', 'Attendance', 2, '/%c3%a9/%562/%41ttendance', ['X']],
  ['/V3/X(a=1,b=2)/Y', 'Learner', 3, '/V3', ['X(a=1,b=2)', 'Y']],
] as const)('%s is the %s service, version %i, at %s', (path, area, version, root, resource) => {
  expect(findRoute(path)).toEqual({ area, version, root, resource })
})

test.each(['/', '', '/Learner', '/V4/X', '/V3/%zz', '/%zz/V3/X'])(
  '%j is not a path of the service',
  (path) => {
    expect(findRoute(path)).toBeUndefined()
  },
)
