import type { Identities } from '../../identity.ts'
import { className } from '../pupil.ts'
import type { Pupil } from '../pupil.ts'
import { groupNumber } from './field-rules.ts'

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

/** The groups of the current pupils: years, classes, houses. */
export function collectGroups(ids: Identities, pupils: readonly Pupil[]): Group[] {
  const current = pupils.filter(({ state }) => state === 'Current')
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
      ({ year }) => String(year),
      (name) => `Year ${name}`,
    ),
    ...by('PrimaryClass', className, (name) => `Class ${name}`),
    ...by(
      'House',
      ({ house }) => house,
      (name) => `${name} House`,
    ),
  ]
}
