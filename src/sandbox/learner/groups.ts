import { isOnRoll, yearGroupOn } from '../dates.ts'
import type { Identities } from '../identity.ts'
import { classNameOn, type Pupil } from '../seed/pupils.ts'

/** Group types of the service (service-facts 15). */
export type GroupType = 'YearGroup' | 'PrimaryClass' | 'House'

/** A group of current learners. */
export interface Group {
  readonly type: GroupType
  readonly externalId: string
  readonly shortName: string
  readonly fullName: string
  readonly displayOrder: number
  /** Numbers of the members. */
  readonly members: ReadonlySet<number>
}

/** The groups of the pupils who are on roll on a day: years, classes, houses. */
export function groupsOn(day: number, ids: Identities, pupils: readonly Pupil[]): Group[] {
  const current = pupils.filter((pupil) => isOnRoll(pupil, day))
  const by = (
    type: GroupType,
    nameOf: (pupil: Pupil) => string | undefined,
    fullName: (name: string) => string,
  ): Group[] => {
    const members = Map.groupBy(current, nameOf)
    const names = [...members.keys()].filter((name) => name !== undefined)
    return names.sort().map((name, index) => ({
      ...{ type, externalId: groupId(ids, name), shortName: name, fullName: fullName(name) },
      displayOrder: index + 1,
      members: new Set(members.get(name)?.map(({ number }) => number)),
    }))
  }
  const yearOf = (pupil: Pupil): string => String(yearGroupOn(pupil, day))
  return [
    ...by('YearGroup', yearOf, (name) => `Year ${name}`),
    ...by('PrimaryClass', (pupil) => classNameOn(pupil, day), (name) => `Class ${name}`), // prettier-ignore
    ...by('House', ({ house }) => house, (name) => `${name} House`), // prettier-ignore
  ]
}

/** The id of a group by its short name: years 1 to 6, classes `1A` to `6D`, houses by their first letter. */
export function groupId(ids: Identities, name: string): string {
  const letter = name.charCodeAt(name.length - 1) - 64
  const number = /^\d$/.test(name)
    ? Number(name)
    : /^\d/.test(name)
      ? Number(name.charAt(0)) * 10 + letter
      : 100 + name.charCodeAt(0)
  return ids.guid('group', number)
}
