import type { Json } from '../json.ts'
import type { School } from '../school.ts'
import type { LearnerEntity } from './compose-set.ts'
import { type Group, groupsOn } from './groups.ts'
import { findLearnerSet, learnerSets } from './learner-sets.ts'

/** The entities of the learner domains, composed once and kept until a client changes one or the day changes. */
interface LearnerEntities {
  all(set: string): readonly LearnerEntity[]
  byKey(set: string, key: string): LearnerEntity | undefined
}

/** The sets of members; links of LearnerGroup are named like the sets they lead to (service.md 2.2). */
export const memberSets = learnerSets.filter(({ subject }) => subject === 'learner' || subject === 'contact')

interface KeptSet {
  readonly version: number
  readonly day: number
  readonly list: readonly LearnerEntity[]
  readonly byKey: ReadonlyMap<string, LearnerEntity>
}

/** Creates the cache of a school's learner entities. */
export function createLearnerEntities(school: School): LearnerEntities {
  const kept = new Map<string, KeptSet>()
  const load = (name: string): KeptSet => {
    const version = school.patches.version()
    const day = school.today()
    const found = kept.get(name)
    if (found?.version === version && found.day === day) return found
    const list = name === 'LearnerGroups' ? groups(day) : composed(name, day)
    const loaded = { version, day, list, byKey: new Map(list.map((one) => [one.key, one])) }
    kept.set(name, loaded)
    return loaded
  }
  const composed = (name: string, day: number): LearnerEntity[] => {
    const set = findLearnerSet(name)
    const list = set === undefined ? [] : school.compose(set, day)
    if (name !== 'LearnerPersonals') return list
    const patches = school.patches.all()
    return list.map((one) => ({ ...one, entity: patches.get(one.learner) ?? one.entity }))
  }
  const all = (name: string): readonly LearnerEntity[] => load(name).list

  const groups = (day: number): LearnerEntity[] =>
    groupsOn(day, school.ids, school.roster.entries)
      .map((group) => ({ learner: 0, key: `${group.externalId},${group.type}`, entity: toEntity(group) }))
      .sort((one, other) => (one.key < other.key ? -1 : 1))

  /** A group has its member collections as getters: read where a query follows them, not before. */
  const toEntity = (group: Group): Record<string, Json> => {
    const entity: Record<string, Json> = {
      ExternalID: group.externalId,
      GroupType: group.type,
      ShortName: group.shortName,
      FullName: group.fullName,
      DisplayOrder: group.displayOrder,
    }
    for (const { name } of memberSets) {
      // Kept with the group, which is made anew when any entity changes: a filter may come here many times.
      let found: Json[] | undefined
      const get = (): Json[] =>
        (found ??= all(name).flatMap(({ learner, entity }) => (group.members.has(learner) ? [entity] : [])))
      Object.defineProperty(entity, name, { get, enumerable: false })
    }
    return entity
  }
  return { all, byKey: (set, key) => load(set).byKey.get(key) }
}
