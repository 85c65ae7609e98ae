import type { Identities } from '../../identity.ts'
import { isOnRoll, yearGroupOn } from '../../roll.ts'
import { classNameOn } from '../pupil.ts'
import type { Pupil } from '../pupil.ts'

/** Group types of the service (service-facts 15). */
export type GroupType = 'YearGroup' | 'PrimaryClass' | 'House'

/** A group of current learners. */
export interface Group {
  readonly type: GroupType
  readonly externalId: string
  readonly shortName: string
  readonly fullName: string
  readonly displayOrder: number
  /** Numbers of the members, in order. */
  readonly members: readonly number[]
}

/** The groups of the pupils who are on roll on a day: years, classes, houses. */
export function groupsOn(day: number, ids: Identities, pupils: readonly Pupil[]): Group[] {
  const current = pupils.filter((pupil) => isOnRoll(pupil, day))
  const by = (
    type: GroupType,
    nameOf: (pupil: Pupil) => string | undefined,
    full: (name: string) => string,
  ): Group[] => {
    const members = Map.groupBy(current, nameOf)
    const names = [...members.keys()].filter((name) => name !== undefined)
    return names.sort().map((name, index) => ({
      type,
      externalId: ids.guid('group', groupNumber(name)),
      shortName: name,
      fullName: full(name),
      displayOrder: index + 1,
      members: (members.get(name) ?? []).map(({ learner }) => learner),
    }))
  }
  return [
    ...by(
      'YearGroup',
      (pupil) => String(yearGroupOn(pupil, day)),
      (name) => `Year ${name}`,
    ),
    ...by(
      'PrimaryClass',
      (pupil) => classNameOn(pupil, day),
      (name) => `Class ${name}`,
    ),
    ...by(
      'House',
      ({ house }) => house,
      (name) => `${name} House`,
    ),
  ]
}

/** A group's number from its short name: years 1 to 6, classes `1A` to `6D`, houses by their first letter. */
export function groupNumber(name: string): number {
  const letter = name.charCodeAt(name.length - 1) - 64
  return /^\d$/.test(name)
    ? Number(name)
    : /^\d/.test(name)
      ? Number(name.charAt(0)) * 10 + letter
      : 100 + name.charCodeAt(0)
}
