import { expect, test } from 'vitest'

import { dayNumber } from '../../../src/sandbox/dates.ts'
import { createTerms, type DayKind } from '../../../src/sandbox/seed/calendar.ts'

const kindOf = createTerms()

test.each([
  ['2026-03-02', 'school'],
  ['2026-03-07', 'weekend'],
  ['2026-03-12', 'closure'],
  ['2026-03-13', 'training'],
  ['2026-02-18', 'holiday'],
  ['2025-12-25', 'holiday'],
  ['2026-05-04', 'holiday'],
  ['2026-05-25', 'holiday'],
  ['2025-10-28', 'holiday'],
  ['2026-08-03', 'holiday'],
])('%s is a %s day', (date, kind) => {
  expect(kindOf(dayNumber(date))).toBe(kind)
})

test.each([2018, 2019, 2020, 2021, 2022, 2023, 2024, 2025, 2026, 2027, 2028, 2029, 2030])(
  'school year %i has 190 to 195 days and five of training',
  (year) => {
    const counts: Record<DayKind, number> = { school: 0, weekend: 0, holiday: 0, training: 0, closure: 0 }
    for (let day = dayNumber(`${year}-09-01`); day < dayNumber(`${year + 1}-09-01`); day += 1)
      counts[kindOf(day)] += 1
    expect(counts.training).toBe(5)
    expect(counts.school + counts.closure).toBeGreaterThanOrEqual(190)
    expect(counts.school + counts.closure).toBeLessThanOrEqual(195)
  },
)
