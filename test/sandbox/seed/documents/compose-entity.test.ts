import { expect, test } from 'vitest'
import { isGuid } from '../../../../src/odata/index.ts'
import { dayNumber } from '../../../../src/sandbox/dates.ts'
import { createIdentities } from '../../../../src/sandbox/identity.ts'
import { createRandom } from '../../../../src/sandbox/random.ts'
import { createComposer } from '../../../../src/sandbox/seed/documents/compose-entity.ts'
import { createContacts, createHome } from '../../../../src/sandbox/seed/documents/contact.ts'
import { learnerSets } from '../../../../src/sandbox/seed/documents/entity-sets.ts'
import type { Json } from '../../../../src/sandbox/seed/documents/field-rules.ts'
import { createPlan } from '../../../../src/sandbox/seed/plan.ts'
import { createPupil } from '../../../../src/sandbox/seed/pupil.ts'
import { servedModel } from '../../../../src/sandbox/served-model.ts'

const ids = createIdentities(1)
const composer = createComposer(servedModel)
const { places, year } = createPlan(1, 'school', dayNumber('2026-06-10'))
const pupils = places.map((place) => createPupil(1, place))
const typeOf = (set: string): string =>
  servedModel.container.entitySets
    .find(({ name }) => name === set)
    ?.entityType.split('.')
    .at(-1) ?? ''
const types = new Map(
  servedModel.schemas.flatMap(({ entityTypes, complexTypes }) =>
    [...entityTypes, ...complexTypes].map((type) => [type.name, type] as const),
  ),
)

function compose(set: string, learner: number) {
  const pupil = pupils[learner - 1] ?? pupils[0]
  if (pupil === undefined) throw new TypeError('no pupil')
  const contacts = createContacts(1, pupil)
  const random = createRandom(1, `${set} ${pupil.learner}`)
  const about = { ids, random, pupil, year, home: createHome(1, pupil), contacts }
  const subject = learnerSets.find(({ name }) => name === set)?.subject
  return composer.compose(typeOf(set), about, subject === 'contact' ? contacts[0] : undefined)
}

const formats: Readonly<Record<string, (value: unknown) => boolean>> = {
  'Edm.Guid': (value) => typeof value === 'string' && isGuid(value),
  'Edm.String': (value) => typeof value === 'string',
  'Edm.Boolean': (value) => typeof value === 'boolean',
  'Edm.Int32': (value) => Number.isInteger(value),
  'Edm.Decimal': (value) => typeof value === 'number',
  'Edm.DateTimeOffset': (value) =>
    typeof value === 'string' && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/.test(value),
  'Edm.Duration': (value) => typeof value === 'string' && value.startsWith('PT'),
}

/** Every way in which a value does not fit its declared type. */
function misfits(typeName: string, value: Json, path: string): string[] {
  const type = types.get(typeName)
  if (type === undefined || typeof value !== 'object' || value === null || Array.isArray(value)) return [path]
  const members = [...type.properties, ...type.navigation]
  const names = members.map(({ name }) => name)
  const unknown = Object.keys(value).filter((name) => !names.includes(name))
  return [
    ...unknown.map((name) => `${path}/${name} is unknown`),
    ...members.flatMap((member) => {
      const own = value[member.name]
      const at = `${path}/${member.name}`
      if (own === undefined) return [`${at} is missing`]
      if (own === null) return member.nullable ? [] : [`${at} is null`]
      const items = member.collection ? (Array.isArray(own) ? own : [own]) : [own]
      return items.flatMap((item) => {
        const fits = formats[member.type]
        if (fits !== undefined) return fits(item) ? [] : [`${at} is no ${member.type}`]
        return misfits(member.type.split('.').at(-1) ?? '', item, at)
      })
    }),
  ]
}

const composed = learnerSets.filter(({ subject }) => subject === 'learner' || subject === 'contact')

test.each(composed.map(({ name }) => name))('entities of %s fit the model, field by field', (set) => {
  for (let learner = 1; learner <= 60; learner += 1)
    expect(misfits(typeOf(set), compose(set, learner), set)).toEqual([])
})

test('every collection of the model has items in a school, but that of boarders', () => {
  const found = new Set<string>()
  const collect = (value: Json): void => {
    if (Array.isArray(value)) value.forEach(collect)
    else if (typeof value === 'object' && value !== null)
      for (const [name, inner] of Object.entries(value)) {
        if (Array.isArray(inner) && inner.length > 0) found.add(name)
        collect(inner)
      }
  }
  for (const { name } of composed)
    for (let learner = 1; learner <= 720; learner += 1) collect(compose(name, learner))
  const links = composed.flatMap(
    ({ name }) => types.get(typeOf(name))?.navigation.map((link) => link.name) ?? [],
  )
  expect([...new Set(links)].filter((name) => !found.has(name))).toEqual(['BoarderStatuses'])
})

test('the ids inside an entity are its own', () => {
  const seen: string[] = []
  const collect = (value: Json): void => {
    if (Array.isArray(value)) value.forEach(collect)
    else if (typeof value === 'object' && value !== null) {
      if (typeof value['ExternalID'] === 'string' && 'StartDate' in value) seen.push(value['ExternalID'])
      Object.values(value).forEach(collect)
    }
  }
  for (let learner = 1; learner <= 100; learner += 1) collect(compose('LearnerContactDetails', learner))
  expect(seen.length).toBeGreaterThan(50)
  expect(new Set(seen).size).toBe(seen.length)
})

test('a family is the same in every domain', () => {
  const basics = compose('LearnerContactBasics', 1)['LearnerContacts'] as { ExternalID: string }[]
  const details = compose('LearnerContactContactDetails', 1)['LearnerContacts'] as { ExternalID: string }[]
  expect(details.map(({ ExternalID }) => ExternalID)).toEqual(basics.map(({ ExternalID }) => ExternalID))
  expect(compose('ContactBasics', 1)['ExternalID']).toBe(basics[0]?.ExternalID)
})
