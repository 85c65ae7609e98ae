import { dayNumber } from '../dates.ts'
import { createRandom } from '../random.ts'
import { fixedMonday } from './calendar.ts'

/** How much there is: one class for tests and demonstrations, or a whole school with its history. */
export type Scale = 'class' | 'school'

/** The roll state of a learner; the cycle is future, current, leaver (service-facts 16). */
export type RollState = 'Current' | 'Leaver' | 'Future'

/** A learner's place in the school. */
export interface Place {
  /** From 1; ids and names follow from it and the seed alone. */
  readonly learner: number
  readonly state: RollState
  /** 1 to 6, as of the fixed weeks. */
  readonly year: number
  /** Letter of the form: A to D. */
  readonly form: string
  readonly admissionDay: number
  readonly leavingDay: number | null
}

/** What a scale consists of. */
export interface SchoolPlan {
  readonly places: readonly Place[]
  /** Calendar year of the first 1 September with marks; undefined: that of the fixed weeks. */
  readonly firstYear?: number
}

const forms = ['B', 'A', 'C', 'D'] as const
const years = [4, 1, 2, 3, 5, 6] as const
const classSize = 30
/** Share of pupils who joined after the first day of their year group's first year. */
const lateJoiners = 0.38

/** A late joiner came on any day between the start of the year group and the fixed weeks. */
function admission(seed: number, learner: number, year: number): number {
  const random = createRandom(seed, `place ${learner}`)
  const start = dayNumber(`${2026 - year}-09-02`)
  const late = random.chance(lateJoiners)
  return late ? start + random.below(dayNumber(fixedMonday) - 14 - start) : start
}

/** Lays out the places. The first 30 learners are class 4B at both scales, so their ids and names never change. */
export function createPlan(seed: number, scale: Scale): SchoolPlan {
  const classes =
    scale === 'class'
      ? [[4, 'B'] as const]
      : years.flatMap((year) => forms.map((form) => [year, form] as const))
  const places: Place[] = []
  const add = (
    state: RollState,
    year: number,
    form: string,
    admissionDay: number,
    leavingDay: number | null,
  ) => places.push({ learner: places.length + 1, state, year, form, admissionDay, leavingDay })
  for (const [year, form] of classes)
    for (let seat = 0; seat < classSize; seat += 1)
      add('Current', year, form, admission(seed, places.length + 1, year), null)
  const others = scale === 'class' ? 1 : 30
  const fixed = dayNumber(fixedMonday)
  for (let index = 0; index < others * 2; index += 1) {
    const year = (index % 6) + 1
    add('Leaver', year, forms[index % 4] ?? 'A', admission(seed, places.length + 1, year), fixed - 20 - index)
  }
  for (let index = 0; index < others; index += 1)
    add('Future', 1, forms[index % 4] ?? 'A', dayNumber('2026-09-02'), null)
  return scale === 'class' ? { places } : { places, firstYear: 2020 }
}
