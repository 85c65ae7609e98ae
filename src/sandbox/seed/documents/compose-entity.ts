import type {
  ComplexType,
  EntityType,
  NavigationProperty,
  Property,
  ServiceModel,
} from '../../../odata/csdl.ts'
import type { Contact } from './contact.ts'
import { dateOf, ruleFor, startOf } from './field-rules.ts'
import type { FieldContext, Json, Rule } from './field-rules.ts'
import { incidenceOf } from './incidence.ts'
import { listedId, lookupOnlyLists, valueLists } from './value-lists.ts'
import type { ListedValue } from './value-lists.ts'

/** Who an entity is about. */
export type Subject = Omit<FieldContext, 'index' | 'made' | 'contact'>

/** Composes entities of the model: every field and every collection inside, expanded or not. */
export interface Composer {
  /** The entity `type` of a subject, or of one of its contacts. */
  compose(type: string, subject: Subject, contact?: Contact): Record<string, Json>
}

/** Type names whose nested items are the contacts themselves. */
const contactTypes = new Set(['LearnerContact', 'LearnerContactContact'])
const relationshipTypes = new Set(['LearnerContactRelationship', 'LearnerRelationship'])

/** A property with the data that all entities share. */
interface Field {
  readonly property: Property
  /** A rule never speaks for a collection. */
  readonly rule: Rule | undefined
  /** Last segment of its type. */
  readonly typeName: string
}

const fieldOf = (owner: string, property: Property): Field => ({
  property,
  rule: property.collection ? undefined : ruleFor(owner, property.name),
  typeName: lastSegment(property.type),
})

/** Creates the composer of a model. */
export function createComposer(model: ServiceModel): Composer {
  const types = new Map<string, EntityType | ComplexType>()
  for (const schema of model.schemas)
    for (const type of [...schema.complexTypes, ...schema.entityTypes]) types.set(type.name, type)
  const enumNames = new Set(model.schemas.flatMap(({ enumTypes }) => enumTypes.map(({ name }) => name)))
  const fields = new Map(
    [...types].map(([name, type]) => [name, type.properties.map((one) => fieldOf(name, one))]),
  )

  const compose = (type: string, subject: Subject, contact?: Contact): Record<string, Json> => {
    let count = 0
    const own = contact?.number ?? subject.pupil.learner
    const idOf = (typeName: string): string => subject.ids.guid(typeName, own, (count += 1))

    const structure = (typeName: string, context: FieldContext, externalId: string): Record<string, Json> => {
      const declared = types.get(typeName)
      const made: Record<string, Json> = {}
      if (declared === undefined) return made
      const inside = { ...context, made }
      for (const one of fields.get(typeName) ?? [])
        made[one.property.name] = one.property.name === 'ExternalID' ? externalId : valueOf(one, inside)
      if (
        typeName === 'MedicalProviderRef' ||
        typeName === 'DietaryNeedRef' ||
        typeName === 'LearnerNationalities'
      )
        made['Type'] = pickListed(typeName, inside)?.description ?? null
      for (const link of declared.navigation) made[link.name] = linked(link, inside)
      return made
    }

    const linked = (link: NavigationProperty, context: FieldContext): Json => {
      const typeName = lastSegment(link.type)
      if (!link.collection) return structure(typeName, context, idOf(typeName))
      if (contactTypes.has(typeName) || relationshipTypes.has(typeName)) {
        const contacts = typeName === 'LearnerRelationship' ? context.contacts.slice(0, 1) : context.contacts
        return contacts.map((one, index) => {
          const id = contactTypes.has(typeName) ? subject.ids.guid('contact', one.number) : idOf(typeName)
          return structure(typeName, { ...context, contact: one, index }, id)
        })
      }
      return many(link.name, context).map((inner) => structure(typeName, inner, idOf(typeName)))
    }

    const valueOf = ({ property, rule, typeName }: Field, context: FieldContext): Json => {
      const value = rule?.(context)
      if (value !== undefined) return value
      if (property.collection) {
        if (property.type === 'Edm.String') return []
        return many(property.name, context).map((inner) => structured(typeName, inner))
      }
      if (property.type.startsWith('Edm.')) return primitive(property, context)
      return enumNames.has(typeName) ? null : structured(typeName, context)
    }

    const structured = (typeName: string, context: FieldContext): Record<string, Json> => {
      const { ids, contact: person, pupil } = context
      if (typeName === 'LearnerContactDetail' && person !== undefined)
        return named(ids.guid('contact', person.number), null, `${person.forename} ${person.surname}`)
      if (typeName === 'LearnerDetail' || typeName === 'Learner')
        return named(ids.guid('learner', pupil.learner), null, `${pupil.forename} ${pupil.surname}`)
      if (typeName === 'GenderRef') {
        const gender = (person ?? pupil).gender
        return named(listedId(ids, typeName, gender.charAt(0)), gender.charAt(0), gender)
      }
      const listed = pickListed(typeName, context)
      if (listed === undefined) return structure(typeName, context, idOf(typeName))
      const id = listedId(ids, typeName, listed.code)
      const hasCode = types.get(typeName)?.properties.some(({ name }) => name === 'Code') === true
      return hasCode
        ? named(id, listed.code, listed.description)
        : { ExternalID: id, Type: listed.description }
    }

    const context: FieldContext = { ...subject, contact, index: 0, made: {} }
    const id =
      contact === undefined ? subject.ids.guid('learner', own) : subject.ids.guid('contact', contact.number)
    return structure(type, context, id)
  }
  return { compose }
}

const named = (id: string, code: string | null, description: string): Record<string, Json> => ({
  ExternalID: id,
  Code: code,
  Description: description,
})

const lastSegment = (qualified: string): string => qualified.slice(qualified.lastIndexOf('.') + 1)

/** One context for each item that the owner has. */
function many(collection: string, context: FieldContext): FieldContext[] {
  const { share, most } = incidenceOf(collection)
  if (!context.random.chance(share)) return []
  return Array.from({ length: 1 + context.random.below(most) }, (_, index) => ({ ...context, index }))
}

/** A value of a list; the first is chosen in half of all cases. */
function pickListed(list: string, { random }: FieldContext): ListedValue | undefined {
  const values = valueLists[list] ?? lookupOnlyLists[list]
  if (values === undefined) return undefined
  return values[random.chance(0.5) ? 0 : random.below(values.length)]
}

/** Guid fields that hold the id of a listed value. */
const guidLists: Readonly<Record<string, string>> = {
  OutcomeSENStatus: 'SENStatusRef',
  ReviewStatus: 'SENReviewStatus',
  ReviewType: 'SENReviewType',
  VenueName: 'Venue',
}

/** A field for which no rule speaks. */
function primitive(property: Property, context: FieldContext): Json {
  const { random, ids, pupil, contacts, year } = context
  switch (property.type) {
    case 'Edm.Boolean':
      return random.chance(0.05)
    case 'Edm.DateTimeOffset':
      return random.chance(0.7)
        ? dateOf(Math.min(pupil.admissionDay + random.below(300), startOf(year)))
        : null
    case 'Edm.Guid': {
      const list = guidLists[property.name]
      const listed = list === undefined ? undefined : pickListed(list, context)
      if (list !== undefined && listed !== undefined) return listedId(ids, list, listed.code)
      const person = contacts[0]
      return property.name === 'LearnerPersonInvolved' && person !== undefined
        ? ids.guid('contact', person.number)
        : null
    }
    case 'Edm.Int32':
      return random.below(10)
    default:
      return null
  }
}
