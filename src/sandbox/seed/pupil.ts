import { dayNumber } from '../dates.ts'
import { createRandom } from '../random.ts'
import { yearGroupOn } from '../roll.ts'
import { boys, girls, surnames } from './names.ts'
import type { Place } from './plan.ts'

/** A learner without the data of the single domains. */
export interface Pupil extends Place {
  readonly forename: string
  readonly middleName: string | null
  readonly surname: string
  readonly gender: 'Female' | 'Male'
  /** Day number. */
  readonly birthDay: number
  /** Not every learner is in a house, so that a filter on null finds some. */
  readonly house: House | undefined
}

const houses = ['Ash', 'Beech', 'Cedar', 'Oak'] as const

/** A house of the school. */
export type House = (typeof houses)[number]

/** Invents the learner of a place; the same seed and number give the same learner. */
export function createPupil(seed: number, place: Place): Pupil {
  const random = createRandom(seed, `pupil ${place.learner}`)
  const female = random.chance(0.49)
  const names = female ? girls : boys
  // Year 1 of the school year 2025/26 was born between September 2019 and August 2020.
  const firstBirthday = dayNumber(`${place.entryYear - 6}-09-01`)
  return {
    ...place,
    forename: random.pick(names),
    middleName: random.chance(0.7) ? random.pick(names) : null,
    surname: random.pick(surnames),
    gender: female ? 'Female' : 'Male',
    birthDay: firstBirthday + random.below(365),
    house: random.chance(0.9) ? random.pick(houses) : undefined,
  }
}

/** The class of a learner on a day: `4B`. */
export function classNameOn(place: Place, day: number): string {
  return `${yearGroupOn(place, day)}${place.form}`
}
