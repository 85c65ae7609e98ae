import { expect, test } from 'vitest'
import { dayNumber, formatInstant } from '../../../src/sandbox/dates.ts'
import { createIdentities } from '../../../src/sandbox/identity.ts'
import { createCalendar, dayKindOf, fixedMonday } from '../../../src/sandbox/seed/calendar.ts'
import { fixed } from '../start-sandbox.ts'

const ids = createIdentities(1)
const calendar = createCalendar(ids, Date.UTC(2026, 5, 10), 2025)

test('the school calendar has a morning and an afternoon for every day of the school years', () => {
  expect(calendar.sessions).toHaveLength(365 * 2)
  expect(calendar.sessions.map(({ number }) => number)).toEqual(
    Array.from({ length: 730 }, (_, index) => dayNumber('2025-09-01') * 2 + index),
  )
})

test.each([
  ['2026-03-02', '09:00', '13:00'],
  ['2026-06-01', '08:00', '12:00'],
  // The clocks change on 2026-03-29 and on 2025-10-26.
  ['2026-03-28', '09:00', '13:00'],
  ['2026-03-29', '08:00', '12:00'],
  ['2025-10-25', '08:00', '12:00'],
  ['2025-10-26', '09:00', '13:00'],
])('the school calendar starts the sessions of %s at %s and %s UTC', (date, ...times) => {
  const number = dayNumber(date) * 2
  const starts = [number, number + 1].map((one) => formatInstant(calendar.byNumber(one)?.start ?? 0))
  expect(starts).toEqual(times.map((time) => `${date}T${time}:00Z`))
})

test('the school calendar has the same sessions in the fixed weeks on every current day', () => {
  const first = dayNumber(fixedMonday)
  const later = createCalendar(ids, Date.UTC(2031, 0, 1), 2025)
  expect(later.schoolSessions(first, 14)).toEqual(calendar.schoolSessions(first, 14))
  expect(calendar.schoolSessions(first, 14)).toHaveLength(16)
  expect(calendar.byId(fixed.morning)).toMatchObject({ half: 'AM', day: first })
})

test.each([
  [Date.UTC(2024, 0, 1), 2023, '2023-09-01', '2026-08-31'],
  [Date.UTC(2026, 11, 1), 2025, '2025-09-01', '2027-08-31'],
  [Date.UTC(2026, 5, 1), 2020, '2020-09-01', '2026-08-31'],
])(
  'the school calendar at time %i with first year %s covers the days from %s to %s',
  (now, firstYear, first, last) => {
    const { sessions } = createCalendar(ids, now, firstYear)
    expect([sessions[0]?.day, sessions.at(-1)?.day]).toEqual([dayNumber(first), dayNumber(last)])
  },
)

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
])('the school calendar classifies %s as %s', (date, kind) => {
  expect(dayKindOf(dayNumber(date))).toBe(kind)
})

test('the school calendar has 190 to 195 school days and five training days in each school year', () => {
  for (let year = 2018; year <= 2030; year += 1) {
    const first = dayNumber(`${year}-09-01`)
    const all = Array.from({ length: dayNumber(`${year + 1}-09-01`) - first }, (_, at) =>
      dayKindOf(first + at),
    )
    const open = all.filter((kind) => kind === 'school' || kind === 'closure').length
    expect([year, all.filter((kind) => kind === 'training').length]).toEqual([year, 5])
    expect(open).toBeGreaterThanOrEqual(190)
    expect(open).toBeLessThanOrEqual(195)
  }
})
