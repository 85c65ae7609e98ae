import { expect, test } from 'vitest'
import { dayNumber } from '../../../src/sandbox/dates.ts'
import { createPlan } from '../../../src/sandbox/seed/plan.ts'
import { className, createPupil } from '../../../src/sandbox/seed/pupil.ts'

const school = createPlan(1, 'school')
const classPlan = createPlan(1, 'class')

test('learners are numbered from 1 without a gap', () => {
  for (const { places } of [school, classPlan])
    expect(places.map(({ learner }) => learner)).toEqual(places.map((_, index) => index + 1))
})

test.each([
  ['class', classPlan, { Current: 30, Leaver: 2, Future: 1 }],
  ['school', school, { Current: 720, Leaver: 60, Future: 30 }],
] as const)('a %s has learners in every state', (_scale, { places }, counts) => {
  const count = (state: string): number => places.filter((place) => place.state === state).length
  expect({ Current: count('Current'), Leaver: count('Leaver'), Future: count('Future') }).toEqual(counts)
})

test('the current learners of the class are 4B at both scales', () => {
  expect(new Set(classPlan.places.slice(0, 30).map(className))).toEqual(new Set(['4B']))
  expect(school.places.slice(0, 30)).toEqual(classPlan.places.slice(0, 30))
})

test('dates of enrolment fit the state', () => {
  const fixed = dayNumber('2026-03-02')
  for (const { state, admissionDay, leavingDay } of school.places) {
    if (state === 'Current') expect([admissionDay < fixed, leavingDay]).toEqual([true, null])
    if (state === 'Future') expect([admissionDay > fixed, leavingDay]).toEqual([true, null])
    if (state === 'Leaver') expect(leavingDay).toBeLessThan(fixed)
  }
})

test('a pupil has the age of the year, and is the same each time', () => {
  for (const place of school.places.slice(0, 720)) {
    const pupil = createPupil(1, place)
    expect(pupil).toEqual(createPupil(1, place))
    expect(pupil.birthDay).toBeGreaterThanOrEqual(dayNumber(`${2020 - place.year}-09-01`))
    expect(pupil.birthDay).toBeLessThan(dayNumber(`${2021 - place.year}-09-01`))
  }
})
