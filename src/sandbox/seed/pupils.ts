import { dayNumber, type Enrolment, schoolYearOf, yearGroupOn } from '../dates.ts'
import type { Identities } from '../identity.ts'
import { createRandom } from '../random.ts'
import { fixedMonday, lastDaysOfTerms, schoolDayBefore } from './calendar.ts'

type Names = readonly [string, ...string[]]

function names(text: string): Names {
  const [first = '', ...others] = text.split(',').map((name) => name.trim())
  return [first, ...others]
}

export const girls = names(`
  Olivia, Amelia, Isla, Ava, Ivy, Freya, Lily, Florence, Mia, Willow, Rosie, Sophia, Aisha, Grace, Evie,
  Zara, Poppy, Maya, Charlotte, Ella, Daisy, Phoebe, Harper, Sienna, Alice, Nia, Maryam, Ayesha, Erin,
  Bonnie, Hana, Leila, Matilda, Thea, Niamh, Zofia
`)

export const boys = names(`
  Noah, Oliver, George, Arthur, Muhammad, Leo, Harry, Oscar, Archie, Henry, Theodore, Freddie, Jack,
  Charlie, Theo, Alfie, Jacob, Thomas, Finley, Arlo, William, Lucas, Roman, Tommy, Isaac, Teddy, Rafe,
  Yusuf, Ibrahim, Luca, Dylan, Rhys, Kofi, Jakub, Arjun, Seán
`)

/** Surnames, including names with apostrophes, accents or many letters, for tests of escaping, encoding and length. */
export const surnames = names(`
  Smith, Jones, Taylor, Brown, Williams, Wilson, Johnson, Davies, Patel, Robinson, Wright, Thompson, Evans,
  Walker, White, Roberts, Green, Hall, Wood, Jackson, Clarke, O'Neill, Khan, Hughes, Ahmed, Begum,
  Mitchell, Carter, Ali, Bell, O'Brien, Kelly, Singh, Kaur, Nowak, Kowalska, Murphy, Fernández, Müller,
  Okafor, Mensah, Nguyễn, Chen, Wong, Ferreira, Smith-Jones, Featherstonehaugh, De la Cruz, MacDonald,
  Ó Súilleabháin, Popescu, Rossi, Yılmaz
`)

export const streets = names(`
  Mill Lane, Station Road, Church Street, Victoria Avenue, Orchard Close, The Green, Park View,
  Kingfisher Way, Chapel Hill, Meadow Rise, Canal Walk, Old Forge Court
`)

/** The size of the seeded data: one class for tests and demonstrations, or a whole school with its history. */
type Scale = 'class' | 'school'

const houses = ['Ash', 'Beech', 'Cedar', 'Oak'] as const

export interface Pupil extends Enrolment {
  /** The number of the learner, counted from 1. All other fields are computed from this number and the seed. */
  readonly number: number
  readonly externalId: string
  /** The calendar year in whose September the year group of the learner started Year 1. */
  readonly entryYear: number
  /** The letter of the class, A to D. */
  readonly form: string
  readonly forename: string
  readonly middleName: string | null
  readonly surname: string
  readonly gender: 'Female' | 'Male'
  /** The birthday as a day number (dates.ts). */
  readonly birthDay: number
  /** The house, or `undefined` for some learners, so that a filter on null finds learners. */
  readonly house: (typeof houses)[number] | undefined
}

export type Roster = ReturnType<typeof createRoster>

const forms = ['B', 'A', 'C', 'D'] as const
const yearGroups = [4, 1, 2, 3, 5, 6] as const
const classSize = 30
const lateJoiners = 0.2

const firstSeptember = (year: number): number => dayNumber(`${year}-09-01`)

/** Returns the last day on roll of a pupil who does not leave early: 31 August after Year 6. */
const endOfPhase = (entryYear: number): number => firstSeptember(entryYear + 6) - 1

/** Returns the admission day: 1 September of the entry year or, for a late joiner, a school day between that day and `before`. */
function admission(seed: number, number: number, entryYear: number, before: number): number {
  const random = createRandom(seed, `place ${number}`)
  const start = firstSeptember(entryYear)
  const late = random.chance(lateJoiners)
  return late && before > start
    ? Math.max(start, schoolDayBefore(start + random.below(before - start)))
    : start
}

/**
 * Creates the roster of a school in which all places are taken on the day `today`. Late joiners came, and leavers left, before the school
 * year of `today` and before the fixed weeks. Leavers left at the end of a term or of Year 6. Some learners start next September. At both
 * scales the first 30 learners are class 4B of the school year of `today`, so the ids and names of these learners never change.
 */
export function createRoster(seed: number, ids: Identities, scale: Scale, today: number) {
  const year = schoolYearOf(today)
  const fixed = dayNumber(fixedMonday)
  const settledYear = Math.min(year, schoolYearOf(fixed))
  const settled = firstSeptember(settledYear)
  const classes =
    scale === 'class'
      ? [[4, 'B'] as const]
      : yearGroups.flatMap((group) => forms.map((form) => [group, form] as const))
  const entries: Pupil[] = []
  const add = (entryYear: number, form: string, admittedBefore: number, leavingDay?: number): void => {
    const number = entries.length + 1
    const place = {
      ...{ number, externalId: ids.guid('learner', number), entryYear, form },
      admissionDay: admission(seed, number, entryYear, admittedBefore),
      leavingDay: leavingDay ?? endOfPhase(entryYear),
    }
    entries.push({ ...place, ...inventPerson(seed, number, entryYear) })
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
  const byGuid = new Map(entries.map((entry) => [entry.externalId, entry]))
  return {
    entries: entries as readonly Pupil[],
    byNumber: (number: number): Pupil | undefined => entries[number - 1],
    /** Returns the learner with this guid, or `undefined` if there is none. The guid must be in lower case. */
    byId: (externalId: string): Pupil | undefined => byGuid.get(externalId),
    /** The calendar year in which the school year of `today` began. */
    year,
    /** The calendar year in which the first school year with marks began. */
    firstYear: scale === 'class' ? settledYear : Math.min(settledYear, year - 5),
  }
}

/** Invents the personal data of a learner. The same seed and number always give the same data. */
function inventPerson(seed: number, number: number, entryYear: number) {
  const random = createRandom(seed, `pupil ${number}`)
  const female = random.chance(0.49)
  const names = female ? girls : boys
  // Children in Year 1 in 2025/26 were born between September 2019 and August 2020.
  const firstBirthday = dayNumber(`${entryYear - 6}-09-01`)
  return {
    forename: random.pick(names),
    middleName: random.chance(0.7) ? random.pick(names) : null,
    surname: random.pick(surnames),
    gender: female ? 'Female' : 'Male',
    birthDay: firstBirthday + random.below(365),
    house: random.chance(0.9) ? random.pick(houses) : undefined,
  } as const
}

/** Returns the name of a pupil's class on a day, such as `4B`. */
export function classNameOn(pupil: Pupil, day: number): string {
  return `${yearGroupOn(pupil, day)}${pupil.form}`
}
