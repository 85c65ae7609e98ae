import { expect, test } from 'vitest'

import { refuseWideRange } from '../../../src/sandbox/attendance/read-bounds.ts'

const day = 86_400_000
const one = new Set(['a'])
const two = new Set(['a', 'b'])

test.each([
  [{ from: 0, to: 90 * day }],
  [{ from: 5, to: 5 }],
  [{ learners: one }],
  [{ learners: one, from: 0 }],
  [{ events: two }],
  [{ records: two }],
  [{ learners: two, from: 0, to: day }],
])('%j is within the limit', (bounds) => {
  expect(refuseWideRange(bounds, 90)).toBeUndefined()
})

test.each([
  [{ from: 0, to: 90 * day + 1 }, 'DateRangeTooLong'],
  [{ learners: one, from: 0, to: 91 * day }, 'DateRangeTooLong'],
  [{ events: one, from: 0, to: 91 * day }, 'DateRangeTooLong'],
  [{}, 'DateRangeRequired'],
  [{ learners: two }, 'DateRangeRequired'],
  [{ from: 0 }, 'DateRangeRequired'],
  [{ to: 0 }, 'DateRangeRequired'],
])('%j is refused', (bounds, code) => {
  const reply = refuseWideRange(bounds, 90)
  expect(reply?.status).toBe(400)
  expect(JSON.parse(String(reply?.body))).toMatchObject({ error: { code, details: [{ target: '$filter' }] } })
})
