import { dayNumber } from '../dates.ts'
import { serviceModel } from '../../model/service-model.ts'
import { createModelIndex, type NavigationProperty, type Property } from '../../odata/index.ts'
import type { Identities } from '../identity.ts'
import type { Json } from '../json.ts'
import { createRandom } from '../random.ts'
import { boys, girls, type Pupil, type Roster, surnames } from '../seed/pupils.ts'
import type { LearnerSet } from './learner-sets.ts'
import {
  type Contact,
  dateOf,
  fullName,
  listed,
  listedId,
  lookupSets,
  named,
  personOf,
  pickListed,
  samples,
  type Subject,
  usualItems,
  valueLists,
} from './samples.ts'

export interface LearnerEntity {
  /** The number of the learner, or 0 for groups and lookups. */
  readonly learner: number
  readonly entity: Record<string, Json>
}

const lastSegment = (qualified: string): string => qualified.slice(qualified.lastIndexOf('.') + 1)
const model = createModelIndex(serviceModel)

/**
 * Composes the entities of a learner set on a day from sample values. Each entity has every field and every collection of the model. The
 * values depend on the seed, the set and the learner. Values that change with time also depend on the day.
 */
export function composeSet(
  { seed, ids, roster }: { seed: number; ids: Identities; roster: Roster },
  set: LearnerSet,
  day: number,
): LearnerEntity[] {
  if (set.subject === 'lookup') return composeLookups(ids, set.name)
  const yearStart = dayNumber(`${roster.year}-09-01`)
  return roster.entries.flatMap((pupil): LearnerEntity[] => {
    const { number: learner, externalId } = pupil
    const contacts = contactsOf(seed, ids, pupil)
    const random = createRandom(seed, `${set.name} ${learner}`)
    const compose = (own: number, contact?: Contact): LearnerEntity => {
      let count = 0
      // A type that occurs in several sets has different ids in each set.
      const nextId = (name: string): string => ids.guid(`${set.name} ${name}`, own, (count += 1))
      const about = { ids, day, yearStart, pupil, contacts, contact, index: 0, random, nextId, draw: 0 }
      return { learner, entity: structure(set.entityType, about, contact?.id ?? externalId) }
    }
    if (set.subject === 'learner') return [compose(learner)]
    return contacts.map((contact) => compose(contact.number, contact))
  })
}

function structure(typeName: string, subject: Subject, id: string): Record<string, Json> {
  const made: Record<string, Json> = {}
  const about = { ...subject, draw: subject.random.below(10 ** 9) }
  const type = model.structured(typeName)
  for (const property of type.properties.values())
    made[property.name] = property.name === 'ExternalID' ? id : valueOf(typeName, property, about)
  for (const link of type.navigation.values()) made[link.name] = linked(link, subject)
  return made
}

function linked({ name, type, collection }: NavigationProperty, subject: Subject): Json {
  const typeName = lastSegment(type)
  if (!collection) return structure(typeName, subject, subject.nextId(typeName))
  if (/^LearnerContact(Contact|Relationship)?$|^LearnerRelationship$/.test(typeName)) {
    const contacts = subject.contact === undefined ? subject.contacts : [subject.contact]
    return contacts.map((contact, index) => {
      const id = typeName.endsWith('Relationship') ? subject.nextId(typeName) : contact.id
      return structure(typeName, { ...subject, contact, index }, id)
    })
  }
  return items(name, subject).map((inner) => structure(typeName, inner, subject.nextId(typeName)))
}

function valueOf(owner: string, { name, type, collection }: Property, subject: Subject): Json {
  const typeName = lastSegment(type)
  if (collection)
    return type === 'Edm.String' ? [] : items(name, subject).map((one) => complexValue(typeName, one))
  const sample = samples[`${owner}.${name}`] ?? samples[name]
  if (typeof sample === 'function') return sample(subject)
  if (name === 'Type') return pickListed(owner, subject.random)?.description ?? null
  if (sample !== undefined) return subject.random.pick(sample)
  if (type === 'Edm.Boolean') return false
  if (type === 'Edm.DateTimeOffset') return dateOf(subject.yearStart - subject.random.below(600))
  return type.startsWith('Edm.') ? null : complexValue(typeName, subject)
}

/** Returns the value of a complex property: a reference to a person, a reference to a value of a list, or a structure. */
function complexValue(typeName: string, subject: Subject): Json {
  const { ids, pupil, contact } = subject
  if (typeName === 'LearnerContactDetail' && contact !== undefined)
    return named(contact.id, null, fullName(contact))
  if (typeName === 'LearnerDetail' || typeName === 'Learner')
    return named(pupil.externalId, null, fullName(pupil))
  if (typeName === 'GenderRef') return listed(ids, typeName, personOf(subject).gender.charAt(0))
  const picked = pickListed(typeName, subject.random)
  if (picked === undefined) return structure(typeName, subject, subject.nextId(typeName))
  const { code, description } = picked
  const id = listedId(ids, typeName, code)
  return model.structured(typeName).properties.has('Code')
    ? named(id, code, description)
    : { ExternalID: id, Type: description }
}

function items(collection: string, subject: Subject): Subject[] {
  const { random } = subject
  const most = usualItems[collection]
  const count = most === undefined ? Number(random.chance(0.2)) : 1 + random.below(most)
  return Array.from({ length: count }, (_, index) => ({ ...subject, index }))
}

function contactsOf(seed: number, ids: Identities, pupil: Pupil): Contact[] {
  const random = createRandom(seed, `contacts ${pupil.number}`)
  const count = random.chance(0.75) ? 2 : 1
  return Array.from({ length: count }, (_, index) => {
    const female = random.chance(index === 0 ? 0.85 : 0.1)
    const names = female ? girls : boys
    const number = pupil.number * 4 + index
    return {
      ...{ id: ids.guid('contact', number), number, gender: female ? 'Female' : 'Male' },
      ...{ forename: random.pick(names), middleName: random.pick(names) },
      surname: random.chance(0.8) ? pupil.surname : random.pick(surnames),
      birthDay: dayNumber('1978-01-01') + random.below(6000),
    }
  })
}

function composeLookups(ids: Identities, set: string): LearnerEntity[] {
  return Object.entries(lookupSets[set] ?? {}).flatMap(([lookupType, list]) =>
    (valueLists.get(list) ?? []).map(({ code, description }, index) => {
      const externalId = listedId(ids, list, code)
      const entity = {
        ExternalID: externalId,
        LookupType: lookupType,
        ResourceProvider: listed(ids, 'ResourceProviderRef', 'DFE'),
        Code: code,
        Description: description,
        DisplayOrder: index + 1,
        IsVisible: true,
      }
      return { learner: 0, entity }
    }),
  )
}
