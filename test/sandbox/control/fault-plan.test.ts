import { expect, test } from 'vitest'
import { readFaults } from '../../../src/sandbox/control/fault.ts'
import { createFaultPlan } from '../../../src/sandbox/control/fault-plan.ts'
import { createRandom } from '../../../src/sandbox/random.ts'

const post = { method: 'POST', path: '/x/Attendance/V3/AttendanceRecords' }
const get = { method: 'GET', path: '/V3/LearnerIdentifiers' }
const batch = { method: 'POST', path: '/V2/Attendance/$batch' }

const plan = (...faults: object[]) => {
  const created = createFaultPlan(createRandom(1, 'test'))
  created.set(readFaults(faults), 7)
  return created
}

test.each([
  [{}, [1, 1, 1]],
  [{ method: 'post' }, [1, 0, 1]],
  [{ path: 'attendancerecords' }, [1, 0, 0]],
  [{ face: 'V2' }, [0, 0, 1]],
  [{ face: 'V3' }, [1, 1, 0]],
  [{ face: 'V3', method: 'GET', path: 'learner' }, [0, 1, 0]],
])('a fault for %j strikes %j', (scope, struck) => {
  const faults = plan({ kind: 'brokenGzip', ...scope })
  expect([post, get, batch].map((target) => faults.strike(target).length)).toEqual(struck)
})

test('skip and count make a window', () => {
  const faults = plan({ kind: 'reset', skip: 2, count: 2 })
  expect(Array.from({ length: 6 }, () => faults.strike(post).length)).toEqual([0, 0, 1, 1, 0, 0])
  expect(faults.list()).toMatchObject([{ struck: 2, remaining: 0 }])
})

test('several faults strike together, each with its own count', () => {
  const faults = plan({ kind: 'latency', ms: 5 }, { kind: 'brokenGzip', count: 1 })
  expect([faults.strike(post), faults.strike(post)].map((list) => list.map(({ kind }) => kind))).toEqual([
    ['latency', 'brokenGzip'],
    ['latency'],
  ])
  faults.clear()
  expect([faults.strike(post), faults.list()]).toEqual([[], []])
})

test('a probability of nothing never strikes', () => {
  const faults = plan({ kind: 'reset', probability: 0 })
  expect(Array.from({ length: 50 }, () => faults.strike(post).length).some((count) => count > 0)).toBe(false)
  expect(faults.seqWhenSet()).toBe(7)
})

test('inside a batch only answers with a path strike', () => {
  const faults = plan(
    { kind: 'reset', path: 'attendancerecords' },
    { kind: 'status', status: 500 },
    { kind: 'status', status: 503, path: 'attendancerecords', count: 1 },
  )
  expect(faults.strikeInside(get)).toEqual([])
  expect(faults.strikeInside(post)).toMatchObject([{ status: 503 }])
  expect(faults.strikeInside(post)).toEqual([])
})
