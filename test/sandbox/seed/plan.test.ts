import { describe, expect, test } from 'vitest'

import { dayNumber, rollStateOn, schoolYearOf, yearGroupOn } from '../../../src/sandbox/dates.ts'
import { createIdentities } from '../../../src/sandbox/identity.ts'
import { dayKindOf } from '../../../src/sandbox/seed/calendar.ts'
import { classNameOn, createRoster } from '../../../src/sandbox/seed/pupils.ts'

const ids = createIdentities(1)

/** The first and last days of school years, days in the fixed weeks, and other days. */
const days = [
  '2024-01-10',
  '2025-09-01',
  '2026-03-02',
  '2026-06-10',
  '2026-08-31',
  '2026-09-01',
  '2028-02-29',
]

describe.each(days)('createRoster on %s', (date) => {
  const today = dayNumber(date)
  const school = createRoster(1, ids, 'school', today)
  const classPlan = createRoster(1, ids, 'class', today)

  test.each([
    ['class', classPlan, { Current: 30, Leaver: 2, Future: 1 }],
    ['school', school, { Current: 720, Leaver: 60, Future: 30 }],
  ] as const)(
    'creates current learners, leavers and future learners at scale %s',
    (_scale, { entries }, counts) => {
      const states = entries.map((place) => rollStateOn(place, today))
      const count = (state: string): number => states.filter((one) => one === state).length
      expect({ Current: count('Current'), Leaver: count('Leaver'), Future: count('Future') }).toEqual(counts)
      expect(states).toEqual([...states].sort((one, other) => order.indexOf(one) - order.indexOf(other)))
    },
  )

  test('creates the same first 30 learners at both scales, all in class 4B', () => {
    expect(new Set(classPlan.entries.slice(0, 30).map((place) => classNameOn(place, today)))).toEqual(
      new Set(['4B']),
    )
    expect(school.entries.slice(0, 30)).toEqual(classPlan.entries.slice(0, 30))
  })

  test('lets learners join on school days and leave at the end of a term', () => {
    for (const place of school.entries) {
      const { admissionDay, leavingDay, entryYear } = place
      const start = dayNumber(`${entryYear}-09-01`)
      const end = dayNumber(`${entryYear + 6}-08-31`)
      expect(admissionDay === start || (admissionDay > start && dayKindOf(admissionDay) === 'school')).toBe(
        true,
      )
      expect(leavingDay).toBeGreaterThan(admissionDay)
      // Leavers leave at the end of a term, which is followed by a week without school, or at the end of Year 6.
      const rest = [1, 2, 3, 4, 5, 6, 7].map((after) => dayKindOf(leavingDay + after))
      expect(leavingDay === end || (dayKindOf(leavingDay) === 'school' && !rest.includes('school'))).toBe(
        true,
      )
      if (rollStateOn(place, today) === 'Current') expect(yearGroupOn(place, today)).toBeLessThanOrEqual(6)
    }
  })

  test('gives each pupil an age that fits the year group', () => {
    // A pupil of Year 1 turns six during the school year.
    for (const { birthDay, entryYear } of school.entries) expect(schoolYearOf(birthDay)).toBe(entryYear - 6)
  })
})

const order = ['Current', 'Leaver', 'Future']

test('createRoster creates a first class that is on roll in the fixed weeks, even if the school is created years later', () => {
  for (const date of ['2026-11-22', '2027-11-22', '2028-11-22'])
    for (const place of createRoster(1, ids, 'class', dayNumber(date)).entries.slice(0, 30))
      expect(rollStateOn(place, dayNumber('2026-03-02'))).toBe('Current')
})
