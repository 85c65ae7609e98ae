import {
  dayMs,
  dayNumber,
  formatInstant,
  isOnRoll,
  monthsBetween,
  rollStateOn,
  schoolYearOf,
  yearGroupOn,
} from '../dates.ts'
import type { ComplexType, EntityType, NavigationProperty, Property } from '../../odata/index.ts'
import type { Identities } from '../identity.ts'
import type { Json } from '../json.ts'
import { servedModel } from '../metadata.ts'
import { createRandom, type Random } from '../random.ts'
import { schoolDayAfter } from '../seed/calendar.ts'
import { boys, classNameOn, girls, type Pupil, type Roster, streets, surnames } from '../seed/pupils.ts'
import type { LearnerSet } from './learner-sets.ts'
import {
  guidLists,
  listedId,
  type ListedValue,
  lookupSets,
  sampleValues,
  usualItems,
  valueLists,
} from './sample-values.ts'

/** An entity of a learner domain. */
export interface LearnerEntity {
  /** 0 for groups and lookups. */
  readonly learner: number
  readonly entity: Record<string, Json>
}

/** An adult of a learner's family. */
interface Contact {
  readonly id: string
  readonly number: number
  readonly forename: string
  readonly middleName: string
  readonly surname: string
  readonly gender: 'Female' | 'Male'
  readonly birthDay: number
}

/** Who the fields of an entity are about. */
interface Subject {
  readonly pupil: Pupil
  readonly contacts: readonly Contact[]
  /** The contact that the entity is, or belongs to. */
  readonly contact: Contact | undefined
  /** Position in its collection, from 0. */
  readonly index: number
  readonly random: Random
  /** An id of the subject's own for each nested entity. */
  readonly nextId: (type: string) => string
}

/** A number of nine digits for each nested entity. */
interface Draw {
  readonly draw: number
}
type Fact = (subject: Subject & Draw) => Json

const personOf = ({ pupil, contact }: Subject): Contact | Pupil => contact ?? pupil
const fullName = ({ forename, surname }: Contact | Pupil): string => `${forename} ${surname}`
const sevenDigits = (subject: Subject): string => String(personOf(subject).number).padStart(7, '0')
const addressee = ({ pupil, contact }: Subject): string => {
  if (contact === undefined) return `Parents of ${fullName(pupil)}`
  return `${contact.gender === 'Male' ? 'Mr' : 'Ms'} ${contact.forename.charAt(0)} ${contact.surname}`
}

const lastSegment = (qualified: string): string => qualified.slice(qualified.lastIndexOf('.') + 1)
const types = new Map<string, EntityType | ComplexType>()
for (const { complexTypes, entityTypes } of servedModel.schemas)
  for (const type of [...complexTypes, ...entityTypes]) types.set(type.name, type)
const typeOfSet = new Map(
  servedModel.container.entitySets.map(({ name, entityType }) => [name, lastSegment(entityType)]),
)

const dateOf = (day: number): string => formatInstant(day * dayMs)
const named = (id: string, code: string | null, description: string): Record<string, Json> => ({
  ...{ ExternalID: id, Code: code, Description: description },
})

/**
 * Composes the entities of a set of the learner domains on a day: every field and every collection of the model, expanded or not,
 * from sample values. The seed, the set and the learner decide which, the day all that changes as time passes.
 */
export function composeSet(
  { seed, ids, roster }: { seed: number; ids: Identities; roster: Roster },
  set: LearnerSet,
  day: number,
): LearnerEntity[] {
  if (set.subject === 'lookup') return composeLookups(ids, set.name)
  const type = typeOfSet.get(set.name) ?? ''
  const composer = createComposer(ids, roster.year, day)
  return roster.entries.flatMap((pupil): LearnerEntity[] => {
    const { number: learner, externalId } = pupil
    const contacts = contactsOf(seed, ids, pupil)
    const random = createRandom(seed, `${set.name} ${learner}`)
    const compose = (own: number, contact?: Contact): Record<string, Json> => {
      let count = 0
      const nextId = (name: string): string => ids.guid(name, own, (count += 1))
      return composer.structure(
        type,
        { pupil, contacts, contact, index: 0, random, nextId },
        contact?.id ?? externalId,
      )
    }
    if (set.subject === 'learner') return [{ learner, entity: compose(learner) }]
    return contacts.map((contact) => ({ learner, entity: compose(contact.number, contact) }))
  })
}

function createComposer(ids: Identities, year: number, day: number) {
  const startOfYear = dayNumber(`${year}-09-01`)

  const listed = (list: string, code: string): Json => {
    const value = valueLists.get(list)?.find((one) => one.code === code)
    return named(listedId(ids, list, code), code, value?.description ?? code)
  }

  const structure = (typeName: string, subject: Subject, id: string): Record<string, Json> => {
    const made: Record<string, Json> = {}
    const about = { ...subject, draw: subject.random.below(10 ** 9) }
    for (const property of types.get(typeName)?.properties ?? [])
      made[property.name] = property.name === 'ExternalID' ? id : valueOf(typeName, property, about)
    for (const link of types.get(typeName)?.navigation ?? []) made[link.name] = linked(link, subject)
    return made
  }

  const linked = ({ name, type, collection }: NavigationProperty, subject: Subject): Json => {
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

  const valueOf = (owner: string, { name, type, collection }: Property, subject: Subject & Draw): Json => {
    const typeName = lastSegment(type)
    if (collection)
      return type === 'Edm.String' ? [] : items(name, subject).map((one) => structured(typeName, one))
    const fact = facts[`${owner}.${name}`] ?? facts[name]
    if (fact !== undefined) return fact(subject)
    if (name === 'Type') return pickListed(owner, subject.random)?.description ?? null
    const samples = sampleValues[name]
    if (samples !== undefined) return subject.random.pick(samples)
    switch (type) {
      case 'Edm.Boolean':
        return false
      case 'Edm.DateTimeOffset':
        return dateOf(startOfYear - subject.random.below(600))
      case 'Edm.Guid': {
        const list = guidLists[name]
        return list === undefined ? null : listedId(ids, list, pickListed(list, subject.random)?.code ?? '')
      }
      default:
        return type.startsWith('Edm.') ? null : structured(typeName, subject)
    }
  }

  const structured = (typeName: string, subject: Subject): Record<string, Json> => {
    const { pupil, contact } = subject
    const person = personOf(subject)
    if (typeName === 'LearnerContactDetail' && contact !== undefined)
      return named(contact.id, null, fullName(contact))
    if (typeName === 'LearnerDetail' || typeName === 'Learner')
      return named(pupil.externalId, null, fullName(pupil))
    const picked =
      typeName === 'GenderRef'
        ? { code: person.gender.charAt(0), description: person.gender }
        : pickListed(typeName, subject.random)
    if (picked === undefined) return structure(typeName, subject, subject.nextId(typeName))
    const { code, description } = picked
    const id = listedId(ids, typeName, code)
    const hasCode = types.get(typeName)?.properties.some(({ name }) => name === 'Code') === true
    return hasCode ? named(id, code, description) : { ExternalID: id, Type: description }
  }

  const startOf = ({ pupil, index }: Subject): number =>
    startOfYear - 30 - ((pupil.number * 37 + index * 101) % 800)
  const start: Fact = (subject) => dateOf(startOf(subject))
  const end: Fact = (subject) => (subject.index % 2 === 0 ? null : dateOf(startOf(subject) + 60))
  const hasLeft = ({ leavingDay }: Pupil): boolean => day > leavingDay
  const group = (pupil: Pupil, type: GroupType, name: string | undefined, description = name): Json =>
    rollStateOn(pupil, day) !== 'Current' || name === undefined || description === undefined
      ? null
      : {
          Description: description,
          ExternalID: groupId(ids, name),
          Type: `PastoralGroup.Definition.${type}`,
        }

  /** What follows from the learner, the contact and the day, by `Type.Field` or by field alone. */
  const facts: Readonly<Record<string, Fact>> = {
    Forename: (subject) => personOf(subject).forename,
    Surname: (subject) => personOf(subject).surname,
    MiddleName: (subject) => personOf(subject).middleName,
    MiddleNames: (subject) => personOf(subject).middleName,
    LegalForename: ({ pupil }) => pupil.forename,
    LegalMiddleNames: ({ pupil }) => pupil.middleName,
    LegalSurname: ({ pupil }) => pupil.surname,
    PreferredForename: ({ pupil }) => pupil.forename,
    PreferredSurname: ({ pupil }) => pupil.surname,
    NameOnPassport: ({ pupil }) => fullName(pupil),
    GenderCategory: ({ pupil }) => pupil.gender,
    DateOfBirth: (subject) => dateOf(personOf(subject).birthDay),
    // Who starts next September has applied already.
    DateOfApplication: ({ pupil }) =>
      dateOf(Math.min(pupil.admissionDay, startOfYear) - 60 - (pupil.number % 200)),
    AgeMonths: ({ pupil }) => monthsBetween(pupil.birthDay, day),
    OnRollState: ({ pupil }) => rollStateOn(pupil, day),
    CurrentYearGroup: ({ pupil }) => {
      const yearGroup = String(yearGroupOn(pupil, day))
      return group(pupil, 'YearGroup', yearGroup, `Year ${yearGroup}`)
    },
    CurrentPrimaryClass: ({ pupil }) => group(pupil, 'PrimaryClass', classNameOn(pupil, day)),
    CurrentHouse: ({ pupil }) => group(pupil, 'House', pupil.house),
    DateOfAdmission: ({ pupil }) => dateOf(pupil.admissionDay),
    // Until a learner has left, the end of the enrolment is not known.
    DateOfLeaviing: ({ pupil }) => (hasLeft(pupil) ? dateOf(pupil.leavingDay) : null),
    DestinationStartDate: ({ pupil }) => (hasLeft(pupil) ? dateOf(schoolDayAfter(pupil.leavingDay)) : null),
    'LearnerEnrolment.ReasonForLeaving': ({ pupil }) => {
      const endsPhase = schoolYearOf(pupil.leavingDay + 1) === pupil.entryYear + 6
      return hasLeft(pupil) ? listed('ReasonForLeavingRef', endsPhase ? 'END' : 'TRF') : null
    },
    GroundsForRemoval: () => null,
    DestinationEstablishment: ({ pupil }) =>
      hasLeft(pupil) ? listed('DestinationEstablishment', '4001') : null,
    'LearnerEnrolmentStatus.StartDate': ({ pupil }) => dateOf(pupil.admissionDay),
    'LearnerEnrolmentStatus.EndDate': ({ pupil }) => (hasLeft(pupil) ? dateOf(pupil.leavingDay) : null),
    'LearnerPersonal.Title': () => null,
    StartDate: start,
    FromDate: start,
    EndDate: end,
    ToDate: end,
    ReviewDate: () => dateOf(startOfYear + 200),
    ExpiryDate: () => dateOf(startOfYear + 1200),
    DateAwarded: start,
    LastFSM: start,
    Salutation: addressee,
    Addressee: addressee,
    ParentalSalutation: addressee,
    ParentalAddressee: addressee,
    ConsentingAdult: ({ contacts: [first] }) => (first === undefined ? null : fullName(first)),
    LearnerPersonInvolved: ({ contacts: [first] }) => first?.id ?? null,
    // The prefix QQ is never assigned, 999 is the range for tests, 01632 960 is set aside for fiction, ZZ is no postcode area.
    NationalInsuranceNumber: (subject) => `QQ${sevenDigits(subject).slice(-6)}C`,
    NHSNumber: (subject) => `999${sevenDigits(subject)}`,
    TelephoneNumber: (subject) => `01632 960${sevenDigits(subject).slice(-3)}`,
    PostCode: ({ pupil }) => `ZZ${1 + (pupil.number % 9)} 1AB`,
    BuildingNumber: ({ pupil }) => String(1 + (pupil.number % 140)),
    Street: ({ pupil }) => streets[pupil.number % streets.length] ?? null,
    AdmissionNumber: ({ pupil }) => String(1000 + pupil.number).padStart(6, '0'),
    UniquePupilNumber: ({ draw }) => `Z${String(draw).padStart(12, '0')}`,
    UniqueLearnerNumber: (subject) => `9${sevenDigits(subject)}00`,
    EmailAddress: (subject) => `contact${personOf(subject).number}@example.org`,
    PassportNumber: (subject) => `10${sevenDigits(subject)}`,
    CodeNumber: (subject) => `500${sevenDigits(subject)}0`,
    Priority: ({ index }) => index + 1,
    Rank: ({ index }) => index + 1,
    IsFirstPointOfContact: ({ index }) => index === 0,
    IsMainEmail: ({ index }) => index === 0,
    UseForAutomatedMessages: ({ index }) => index === 0,
  }
  return { structure }
}

/** One subject for each item of a collection. */
function items(collection: string, subject: Subject): Subject[] {
  const { random } = subject
  const most = usualItems[collection]
  const count = most === undefined ? Number(random.chance(0.2)) : 1 + random.below(most)
  return Array.from({ length: count }, (_, index) => ({ ...subject, index }))
}

/** A value of a list; the first is chosen in half of all cases. */
function pickListed(list: string, random: Random): ListedValue | undefined {
  const values = valueLists.get(list)
  return values === undefined || random.chance(0.5) ? values?.[0] : random.pick(values)
}

/** The one or two adults of a learner. */
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
        ResourceProvider: named(
          listedId(ids, 'ResourceProviderRef', 'DFE'),
          'DFE',
          'Department for Education',
        ),
        Code: code,
        Description: description,
        DisplayOrder: index + 1,
        IsVisible: true,
      }
      return { learner: 0, entity }
    }),
  )
}

/** Group types of the service (service-facts 15). */
type GroupType = 'YearGroup' | 'PrimaryClass' | 'House'

/** A group of current learners with the numbers of its members. */
interface Group {
  readonly entity: Record<string, Json> & { readonly ExternalID: string }
  readonly members: ReadonlySet<number>
}

/** The groups of the pupils who are on roll on a day, by their ids: years, classes, houses. */
export function groupsOn(day: number, ids: Identities, pupils: readonly Pupil[]): Group[] {
  const current = pupils.filter((pupil) => isOnRoll(pupil, day))
  const by = (
    GroupType: GroupType,
    nameOf: (pupil: Pupil) => string | undefined,
    fullName: (name: string) => string,
  ): Group[] => {
    const members = Map.groupBy(current, nameOf)
    const names = [...members.keys()].filter((name) => name !== undefined)
    return names.sort().map((name, index) => ({
      entity: {
        ...{ ExternalID: groupId(ids, name), GroupType, ShortName: name, FullName: fullName(name) },
        DisplayOrder: index + 1,
      },
      members: new Set(members.get(name)?.map(({ number }) => number)),
    }))
  }
  return [
    ...by('YearGroup', (pupil) => String(yearGroupOn(pupil, day)), (name) => `Year ${name}`), // prettier-ignore
    ...by('PrimaryClass', (pupil) => classNameOn(pupil, day), (name) => `Class ${name}`), // prettier-ignore
    ...by('House', ({ house }) => house, (name) => `${name} House`), // prettier-ignore
  ].sort((one, other) => (one.entity.ExternalID < other.entity.ExternalID ? -1 : 1))
}

/** The id of a group by its short name: years 1 to 6, classes `1A` to `6D`, houses by their first letter. */
function groupId(ids: Identities, name: string): string {
  const letter = name.charCodeAt(name.length - 1) - 64
  const number = /^\d$/.test(name)
    ? Number(name)
    : /^\d/.test(name)
      ? Number(name.charAt(0)) * 10 + letter
      : 100 + name.charCodeAt(0)
  return ids.guid('group', number)
}
