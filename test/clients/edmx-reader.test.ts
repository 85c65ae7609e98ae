import { parse } from '@sap-ux/edmx-parser'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { createSandbox, type Sandbox } from '../../src/sandbox/index.ts'
import { documentedTypes, type FieldTable } from '../model/documented-types.ts'

/**
 * The properties of a type in the result of a public EDMX reader, which code generators use. The type declarations of the reader need a
 * package that the reader does not include.
 */
interface Structured {
  readonly name: string
  readonly fullyQualifiedName: string
  readonly entityProperties?: readonly Property[]
  readonly properties?: readonly Property[]
  readonly navigationProperties: readonly {
    readonly name: string
    readonly targetTypeName: string
    readonly isCollection: boolean
    readonly containsTarget: boolean
  }[]
}
interface Property {
  readonly name: string
  readonly type: string
  readonly nullable?: boolean
}
interface Schema {
  readonly entityTypes: readonly (Structured & { readonly keys: readonly Property[] })[]
  readonly complexTypes: readonly Structured[]
  readonly enumTypes: readonly { readonly fullyQualifiedName: string }[]
  readonly entitySets: readonly { readonly name: string; readonly entityTypeName: string }[]
}

const headers = { 'Ocp-Apim-Subscription-Key': 'sandbox', Authorization: 'bearer sandbox' }
let sandbox: Sandbox
let base: string

beforeAll(async () => {
  sandbox = createSandbox()
  base = (await sandbox.listen()).url
})
afterAll(() => sandbox.close())

async function read(path: string): Promise<Schema> {
  const response = await fetch(base + path, { headers })
  expect(response.headers.get('content-type')).toMatch(/^application\/xml/)
  const { version, schema } = parse(await response.text()) as { version: string; schema: Schema }
  expect(version).toBe('4.0')
  return schema
}

const propertiesOf = ({ entityProperties = [], properties = [] }: Structured): readonly Property[] => [
  ...entityProperties,
  ...properties,
]

/** Returns the names of the types of all properties and links in a schema, without `Collection()`. */
function typesUsed({ entityTypes, complexTypes }: Schema): Set<string> {
  const names = [...entityTypes, ...complexTypes].flatMap((own) => [
    ...propertiesOf(own).map(({ type }) => type),
    ...own.navigationProperties.map(({ targetTypeName }) => targetTypeName),
  ])
  return new Set(names.map((name) => name.replace(/^Collection\((.*)\)$/, '$1')))
}

describe.each([
  ...['/V3/$metadata', '/Learner/V3/$metadata', '/Attendance/V3/$metadata'],
  '/V2/Attendance/$metadata',
])('the metadata document %s', (path) => {
  test('declares every type that it uses', async () => {
    const schema = await read(path)
    const declared = new Set(
      [...schema.entityTypes, ...schema.complexTypes, ...schema.enumTypes].map(
        ({ fullyQualifiedName }) => fullyQualifiedName,
      ),
    )
    const missing = [...typesUsed(schema)].filter((name) => !name.startsWith('Edm.') && !declared.has(name))
    expect(missing).toEqual([])
  })

  test('declares a key of required fields for every entity type, and a type for every entity set', async () => {
    const schema = await read(path)
    const entities = new Set(schema.entityTypes.map(({ fullyQualifiedName }) => fullyQualifiedName))
    for (const type of schema.entityTypes) {
      expect([type.name, type.keys.length > 0]).toEqual([type.name, true])
      const own = new Set(propertiesOf(type).map(({ name }) => name))
      expect(type.keys.filter(({ name }) => !own.has(name))).toEqual([])
      expect(type.keys.filter(({ nullable }) => nullable !== false)).toEqual([])
    }
    expect(schema.entitySets.length).toBeGreaterThan(0)
    expect(schema.entitySets.filter(({ entityTypeName }) => !entities.has(entityTypeName))).toEqual([])
  })
})

test('the metadata declares the sub-domains of service.md 1.1 as entity sets under their own names', async () => {
  const sets = (await read('/V3/$metadata')).entitySets.map(({ name }) => name)
  expect(sets).toEqual(
    expect.arrayContaining([
      'LearnerIdentifiers',
      'LearnerPersonals',
      'LearnerCulturals',
      'LearnerRegistrations',
      'LearnerGroups',
      'LearnerMedicals',
      'LearnerDietarys',
      'LearnerTransports',
      'LearnerWelfares',
      'LearnerGrants',
      'LearnerContactDetails',
      'LearnerSENs',
      'LearnerSENLookps',
    ]),
  )
})

/** Links that the sandbox adds so that the expand list of service.md 1.1 for Grants works. */
const welfareLinksOfGrants = {
  IncareDetails: 'nav Collection(Svc.LearnerInCareDetail)',
  PersonalEducationPlans: 'nav Collection(Svc.PersonalEducationPlan)',
  ChildProtectionPlans: 'nav Collection(Svc.LearnerChildProtectionPlan)',
}

function fieldsOf(type: Structured): FieldTable {
  const fields = propertiesOf(type).map(({ name, type: own, nullable = true }) => {
    const required = !nullable && !own.startsWith('Collection(')
    return [name, `${own}${required ? ' required' : ''}`] as const
  })
  const links = type.navigationProperties.map(({ name, targetTypeName, isCollection, containsTarget }) => {
    const target = isCollection ? `Collection(${targetTypeName})` : targetTypeName
    return [name, `${containsTarget ? 'contained' : 'nav'} ${target}`] as const
  })
  return Object.fromEntries<string>([...fields, ...links])
}

test.each(['/V3/$metadata', '/Attendance/V3/$metadata'])(
  'the metadata document %s declares every field of service.md 2 with its type and nullability',
  async (path) => {
    const { entityTypes, complexTypes } = await read(path)
    const found = new Map([...entityTypes, ...complexTypes].map((type) => [type.name, fieldsOf(type)]))
    const grants = { ...documentedTypes.get('LearnerGrant'), ...welfareLinksOfGrants }
    const expected = new Map([...documentedTypes, ['LearnerGrant', grants]])
    expect(expected.size).toBeGreaterThan(90)
    expect(new Map([...expected.keys()].map((name) => [name, found.get(name)]))).toEqual(expected)
  },
)
