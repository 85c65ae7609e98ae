import type { Json } from '../seed/documents/field-rules.ts'
import { learnerSets } from '../seed/documents/entity-sets.ts'
import type { LearnerSet } from '../seed/documents/entity-sets.ts'
import { lookupSets } from '../seed/documents/value-lists.ts'
import { groupsOn } from '../seed/documents/groups.ts'
import type { Group } from '../seed/documents/groups.ts'
import type { School } from '../school.ts'
import { asOfToday } from './as-of-today.ts'
import type { Entity } from '../query/compiled-query.ts'

/** An entity of a learner domain with its data in the store. */
export interface LearnerEntity {
  /** 0 for groups and lookups. */
  readonly learner: number
  readonly key: string
  readonly entity: Entity
}

/** The entities of the learner domains, read from the store once and kept until one of them or the day changes. */
export interface LearnerEntities {
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
  const load = (set: string): KeptSet => {
    const version = school.entities.version()
    const day = school.today()
    const found = kept.get(set)
    if (found?.version === version && found.day === day) return found
    const list = set === 'LearnerGroups' ? groups(day) : stored(set, day)
    const loaded = { version, day, list, byKey: new Map(list.map((one) => [one.key, one])) }
    kept.set(set, loaded)
    return loaded
  }
  const stored = (set: string, day: number): LearnerEntity[] =>
    school.entities.all(set).map(({ learner, key, body }): LearnerEntity => {
      const pupil = school.pupils[learner - 1]
      const entity = readEntity(body)
      const shown = pupil === undefined ? entity : asOfToday(set, entity, pupil, day, school.ids)
      return { learner, key, entity: shown }
    })
  const all = (set: string): readonly LearnerEntity[] => load(set).list

  const groups = (day: number): LearnerEntity[] =>
    groupsOn(day, school.ids, school.pupils)
      .map((group) => ({
        learner: 0,
        key: `${group.externalId},${group.type}`,
        entity: toEntity(group),
      }))
      .sort((one, other) => (one.key < other.key ? -1 : 1))

  /** A group has its member collections as getters: read where a query follows them, not before. */
  const toEntity = (group: Group): Entity => {
    const entity: Record<string, Json> = {
      ExternalID: group.externalId,
      GroupType: group.type,
      ShortName: group.shortName,
      FullName: group.fullName,
      DisplayOrder: group.displayOrder,
    }
    const members = new Set(group.members)
    for (const { name } of memberSets) {
      // Kept with the group, which is made anew when any entity changes: a filter may come here many times.
      let found: Json[] | undefined
      const get = (): Json[] =>
        (found ??= all(name)
          .filter(({ learner }) => members.has(learner))
          .map((member) => ({ ...member.entity })))
      Object.defineProperty(entity, name, { get, enumerable: false })
    }
    return entity
  }
  return { all, byKey: (set, key) => load(set).byKey.get(key) }
}

/** Reads the body of a stored entity. */
function readEntity(body: string): Record<string, Json> {
  const value: Json = JSON.parse(body) as Json
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {}
}

/** The set that a name in a path means, in any case and in any spelling that the interface has. */
export function findLearnerSet(name: string): LearnerSet | undefined {
  const wanted = name.toLowerCase()
  return learnerSets.find((set) =>
    [set.name, ...set.aliases].some((spelling) => spelling.toLowerCase() === wanted),
  )
}

/** The lookup that a LookupType names, in any case, and the set that holds it: `/V1/Lookup/Learner/Ethnicity`. */
export function findLookup(name: string): { readonly set: LearnerSet; readonly type: string } | undefined {
  for (const [setName, types] of Object.entries(lookupSets)) {
    const type = Object.keys(types).find((one) => one.toLowerCase() === name.toLowerCase())
    const set = type === undefined ? undefined : findLearnerSet(setName)
    if (type !== undefined && set !== undefined) return { set, type }
  }
  return undefined
}
