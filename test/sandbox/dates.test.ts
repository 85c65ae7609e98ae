import { expect, test } from 'vitest'
import {
  dayNumber,
  formatDay,
  formatInstant,
  mondayOf,
  schoolYearOf,
  ukOffsetMinutes,
  weekday,
} from '../../src/sandbox/dates.ts'

test.each([
  ['2026-03-02', 0, '2026-03-02', 2025],
  ['2026-03-08', 6, '2026-03-02', 2025],
  ['2026-08-31', 0, '2026-08-31', 2025],
  ['2026-09-01', 1, '2026-08-31', 2026],
  ['1970-01-01', 3, '1969-12-29', 1969],
])('%s is day %i of its week, which begins on %s, in school year %i', (date, day, monday, year) => {
  const number = dayNumber(date)
  expect([weekday(number), formatDay(mondayOf(number)), schoolYearOf(number)]).toEqual([day, monday, year])
})

test.each([
  ['2026-03-28', 0],
  ['2026-03-29', 60],
  ['2026-10-24', 60],
  ['2026-10-25', 0],
  ['2025-03-30', 60],
  ['2025-10-26', 0],
])('on %s local time is %i minutes ahead of UTC', (date, minutes) => {
  expect(ukOffsetMinutes(dayNumber(date))).toBe(minutes)
})

test.each([
  [Date.UTC(2026, 2, 2, 9), '2026-03-02T09:00:00Z'],
  [Date.UTC(2026, 2, 2, 9, 0, 0, 120), '2026-03-02T09:00:00.120Z'],
])('instant %i is written %s', (ms, text) => {
  expect(formatInstant(ms)).toBe(text)
})
