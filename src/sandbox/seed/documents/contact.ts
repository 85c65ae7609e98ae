import { dayNumber } from '../../dates.ts'
import { createRandom } from '../../random.ts'
import { boys, girls, streets, surnames } from '../names.ts'
import type { Pupil } from '../pupil.ts'

/** An adult of a learner's family. */
export interface Contact {
  /** Four times the learner's number, plus the place in the family. */
  readonly number: number
  readonly learner: number
  readonly forename: string
  readonly middleName: string
  readonly surname: string
  readonly gender: 'Female' | 'Male'
  readonly birthDay: number
}

/** Where a family lives. */
export interface Home {
  readonly buildingNumber: string
  readonly street: string
  readonly postCode: string
}

/** The one or two adults of a learner. */
export function createContacts(seed: number, pupil: Pupil): Contact[] {
  const random = createRandom(seed, `contacts ${pupil.learner}`)
  const count = random.chance(0.75) ? 2 : 1
  return Array.from({ length: count }, (_, index) => {
    const female = random.chance(index === 0 ? 0.85 : 0.1)
    const names = female ? girls : boys
    return {
      number: pupil.learner * 4 + index,
      learner: pupil.learner,
      forename: random.pick(names),
      middleName: random.pick(names),
      surname: random.chance(0.8) ? pupil.surname : random.pick(surnames),
      gender: female ? 'Female' : 'Male',
      birthDay: dayNumber('1978-01-01') + random.below(6000),
    }
  })
}

/** The home of a learner and of the first contact. */
export function createHome(seed: number, pupil: Pupil): Home {
  const random = createRandom(seed, `home ${pupil.learner}`)
  return {
    buildingNumber: String(1 + random.below(140)),
    street: random.pick(streets),
    // ZZ is not a postcode area.
    postCode: `ZZ${1 + random.below(9)} ${1 + random.below(9)}${random.pick(['AB', 'JX', 'LP', 'QN', 'TD'])}`,
  }
}
