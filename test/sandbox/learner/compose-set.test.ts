import { afterAll, expect, test } from 'vitest'
import { isGuid } from '../../../src/odata/index.ts'
import type { Json } from '../../../src/sandbox/json.ts'
import { findLearnerSet, learnerSets, type LearnerSet } from '../../../src/sandbox/learner/learner-sets.ts'
import { serviceModel } from '../../../src/model/service-model.ts'
import { readOptions } from '../../../src/sandbox/options.ts'
import { openSchool } from '../../../src/sandbox/school.ts'
import { testNow } from '../start-sandbox.ts'

const school = openSchool(
  readOptions({}),
  () => Date.parse(testNow),
  () => undefined,
)
afterAll(() => school.database.close())
const compose = (set: LearnerSet) => school.compose(set, school.today()).map(({ entity }) => entity)
const types = new Map(
  serviceModel.schemas.flatMap(({ entityTypes, complexTypes }) =>
    [...entityTypes, ...complexTypes].map((type) => [type.name, type] as const),
  ),
)
const typeOf = ({ name }: LearnerSet): string =>
  serviceModel.container.entitySets
    .find((set) => set.name === name)
    ?.entityType.split('.')
    .at(-1) ?? ''

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

/** Returns every value that does not fit its declared type, and adds the names of collections with items to `filled`. */
function misfits(typeName: string, value: Json, path: string, filled: Set<string>): string[] {
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
      if (member.collection && items.length > 0) filled.add(member.name)
      return items.flatMap((item) => {
        const fits = formats[member.type]
        if (fits !== undefined) return fits(item) ? [] : [`${at} is no ${member.type}`]
        return misfits(member.type.split('.').at(-1) ?? '', item, at, filled)
      })
    }),
  ]
}

const composed = learnerSets.filter(({ subject }) => subject === 'learner' || subject === 'contact')

test('composeSet returns entities that fit the model and have at least one item in every collection', () => {
  const filled = new Set<string>()
  for (const set of composed)
    for (const entity of compose(set)) expect(misfits(typeOf(set), entity, set.name, filled)).toEqual([])
  const links = composed.flatMap((set) => types.get(typeOf(set))?.navigation.map(({ name }) => name) ?? [])
  expect(links.filter((name) => !filled.has(name))).toEqual([])
})

test('composeSet gives every nested entity a different id', () => {
  const seen: string[] = []
  const collect = (value: Json): void => {
    if (Array.isArray(value)) value.forEach(collect)
    else if (typeof value === 'object' && value !== null) {
      if (typeof value['ExternalID'] === 'string' && 'StartDate' in value) seen.push(value['ExternalID'])
      Object.values(value).forEach(collect)
    }
  }
  for (const set of composed) compose(set).forEach(collect)
  expect(seen.length).toBeGreaterThan(100)
  expect(new Set(seen).size).toBe(seen.length)
})

test('composeSet gives a learner the same contacts in every domain', () => {
  const idsOf = (name: string): unknown[] => {
    const [entity] = compose(findLearnerSet(name) ?? expect.unreachable())
    return (entity?.['LearnerContacts'] as { ExternalID: string }[]).map(({ ExternalID }) => ExternalID)
  }
  expect(idsOf('LearnerContactContactDetails')).toEqual(idsOf('LearnerContactBasics'))
  const [contact] = compose(findLearnerSet('ContactBasics') ?? expect.unreachable())
  expect(contact?.['ExternalID']).toBe(idsOf('LearnerContactBasics')[0])
})
