import { expect, it } from 'vitest'

import { createConfirmedMarks } from '../../src/writes/confirmed-marks.ts'
import { guid } from '../support/batch-request.ts'

const [earlier, later] = ['2026-06-10T08:00:00Z', '2026-06-10T08:00:00.001Z']

it('knows a mark by its id, in any case, and by the time that it showed last', () => {
  const marks = createConfirmedMarks()
  expect(marks.has(guid(1), earlier)).toBe(false)
  marks.add('ABCDEF01-0000-4000-8000-00000000000A', earlier)
  marks.add(guid(1), earlier)
  marks.add(guid(1), later)
  expect(marks.has('abcdef01-0000-4000-8000-00000000000a', earlier)).toBe(true)
  expect([marks.has(guid(1), earlier), marks.has(guid(1), later)]).toEqual([false, true])
  expect(marks.has(guid(2), later)).toBe(false)
})

it('forgets marks one by one, and never takes one for another', () => {
  const marks = createConfirmedMarks()
  for (let n = 0; n < 200_000; n += 1) marks.add(guid(n), earlier)
  const known = (from: number): number =>
    Array.from({ length: 10_000 }, (_, index) => marks.has(guid(from + index), earlier)).filter(Boolean)
      .length
  expect(known(190_000)).toBeGreaterThan(8_000)
  expect(known(100_000)).toBeLessThan(4_000)
  expect(known(200_000)).toBe(0)
})
