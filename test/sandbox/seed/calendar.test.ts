import { expect, test } from 'vitest'
import { dayNumber, formatInstant } from '../../../src/sandbox/dates.ts'
import { createIdentities } from '../../../src/sandbox/identity.ts'
import { createCalendar, fixedMonday } from '../../../src/sandbox/seed/calendar.ts'
import { fixed } from '../start-sandbox.ts'

const ids = createIdentities(1)
const calendar = createCalendar(ids, Date.UTC(2026, 5, 10), 2025)

test('every calendar day of the school years has a morning and an afternoon', () => {
  expect(calendar.sessions).toHaveLength(365 * 2)
  expect(calendar.sessions.map(({ number }) => number)).toEqual(
    Array.from({ length: 730 }, (_, index) => dayNumber('2025-09-01') * 2 + index),
  )
})

test.each([
  ['2026-03-02', 'AM', '2026-03-02T09:00:00Z'],
  ['2026-03-02', 'PM', '2026-03-02T13:00:00Z'],
  ['2026-06-01', 'AM', '2026-06-01T08:00:00Z'],
  ['2026-06-01', 'PM', '2026-06-01T12:00:00Z'],
])('on %s %s begins at %s', (date, half, start) => {
  const session = calendar.byNumber(dayNumber(date) * 2 + (half === 'PM' ? 1 : 0))
  expect(session).toMatchObject({ half, kind: 'school' })
  expect(formatInstant(session?.start ?? 0)).toBe(start)
})

test('the fixed weeks hold the same sessions whatever the day', () => {
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
])('at %i with first year %s it runs from %s to %s', (now, firstYear, first, last) => {
  const { sessions } = createCalendar(ids, now, firstYear)
  expect([sessions[0]?.day, sessions.at(-1)?.day]).toEqual([dayNumber(first), dayNumber(last)])
})
