import { dayNumber, schoolYearOf } from '../dates.ts'
import { createRandom } from '../random.ts'
import type { Enrolment } from '../roll.ts'
import { fixedMonday } from './calendar.ts'
import { lastDaysOfTerms, schoolDayBefore } from './terms.ts'

/** How much there is: one class for tests and demonstrations, or a whole school with its history. */
export type Scale = 'class' | 'school'

/** A learner's place in the school. */
export interface Place extends Enrolment {
  /** From 1; ids and names follow from it and the seed alone. */
  readonly learner: number
  /** Calendar year of the September in which the learner's year group began Year 1. */
  readonly entryYear: number
  /** Letter of the form: A to D. */
  readonly form: string
}

/** The dimensions of a scale. */
export interface SchoolPlan {
  readonly places: readonly Place[]
  /** Calendar year of the September in which the school year of the plan began. */
  readonly year: number
  /** Calendar year of the first 1 September with marks. */
  readonly firstYear: number
}

const forms = ['B', 'A', 'C', 'D'] as const
const yearGroups = [4, 1, 2, 3, 5, 6] as const
const classSize = 30
/** Share of pupils who joined after the first day of their year group's first year. */
const lateJoiners = 0.2

const firstSeptember = (year: number): number => dayNumber(`${year}-09-01`)

/** Pupils stay on roll to the end of August of Year 6. */
const endOfPhase = (entryYear: number): number => firstSeptember(entryYear + 6) - 1

/** The first day of the year group, or for a late joiner a school day between that and `before`. */
function admission(seed: number, learner: number, entryYear: number, before: number): number {
  const random = createRandom(seed, `place ${learner}`)
  const start = firstSeptember(entryYear)
  const late = random.chance(lateJoiners)
  return late && before > start
    ? Math.max(start, schoolDayBefore(start + random.below(before - start)))
    : start
}

/**
 * Lays out the places of a school that is full on the day `today`. Late joiners came, and leavers left, before that school year
 * and before the fixed weeks: at the end of a term or of Year 6; others start next September. The first 30 learners are class
 * 4B of the year of `today` at both scales, so their ids and names never change.
 */
export function createPlan(seed: number, scale: Scale, today: number): SchoolPlan {
  const year = schoolYearOf(today)
  const fixed = dayNumber(fixedMonday)
  const settledYear = Math.min(year, schoolYearOf(fixed))
  const settled = firstSeptember(settledYear)
  const classes =
    scale === 'class'
      ? [[4, 'B'] as const]
      : yearGroups.flatMap((group) => forms.map((form) => [group, form] as const))
  const places: Place[] = []
  const add = (entryYear: number, form: string, admittedBefore: number, leavingDay?: number): void => {
    const learner = places.length + 1
    const admissionDay = admission(seed, learner, entryYear, admittedBefore)
    places.push({ learner, entryYear, form, admissionDay, leavingDay: leavingDay ?? endOfPhase(entryYear) })
  }
  for (const [group, form] of classes)
    for (let seat = 0; seat < classSize; seat += 1) add(year + 1 - group, form, settled)
  const others = scale === 'class' ? 1 : 30
  const ends = lastDaysOfTerms(Math.min(today, fixed), 3)
  const yearBefore = firstSeptember(settledYear - 1)
  for (let index = 0; index < others * 2; index += 1) {
    const form = forms[index % 4] ?? 'A'
    const pair = Math.floor(index / 2)
    if (index % 2 === 0) add(settledYear - 2 - (pair % 4), form, yearBefore, ends[pair % ends.length])
    else add(settledYear - 6, form, yearBefore)
  }
  for (let index = 0; index < others; index += 1) {
    const entryYear = year + 1
    add(entryYear, forms[index % 4] ?? 'A', firstSeptember(entryYear))
  }
  return { places, year, firstYear: scale === 'class' ? settledYear : Math.min(settledYear, year - 5) }
}
