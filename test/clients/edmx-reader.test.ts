import { parse } from '@sap-ux/edmx-parser'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { createSandbox, type Sandbox } from '../../src/sandbox/index.ts'

/** A public EDMX reader on the sandbox's metadata: what a code generator would see. */
interface Property {
  readonly name: string
  readonly type: string
  readonly nullable?: boolean
}
interface Structured {
  readonly name: string
  readonly fullyQualifiedName: string
  readonly navigationProperties: readonly { readonly targetTypeName?: string }[]
}
/** The part of the reader's result that is looked at; its own types come from a package that it does not bring along. */
interface Schema {
  readonly entityTypes: readonly (Structured & {
    readonly keys: readonly Property[]
    readonly entityProperties: readonly Property[]
  })[]
  readonly complexTypes: readonly (Structured & { readonly properties: readonly Property[] })[]
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

/** Type names without `Collection()`, of everything in a schema that has a type. */
function typesUsed(schema: Schema): Set<string> {
  const structured = [...schema.entityTypes, ...schema.complexTypes]
  const names = structured.flatMap((own) => [
    ...('entityProperties' in own ? own.entityProperties : own.properties).map(({ type }) => type),
    ...own.navigationProperties.map((property) =>
      'targetTypeName' in property ? property.targetTypeName : '',
    ),
  ])
  return new Set(
    names.map((name) => name.replace(/^Collection\((.*)\)$/, '$1')).filter((name) => name !== ''),
  )
}

describe.each(['/V3/$metadata', '/Learner/V3/$metadata', '/Attendance/V3/$metadata'])('%s', (path) => {
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

  test('gives every entity type a key that it has, and every set a type', async () => {
    const schema = await read(path)
    const entities = new Set(schema.entityTypes.map(({ fullyQualifiedName }) => fullyQualifiedName))
    for (const type of schema.entityTypes) {
      expect([type.name, type.keys.length > 0]).toEqual([type.name, true])
      const own = new Set(type.entityProperties.map(({ name }) => name))
      expect(type.keys.filter(({ name }) => !own.has(name))).toEqual([])
      expect(type.keys.filter(({ nullable }) => nullable !== false)).toEqual([])
    }
    expect(schema.entitySets.length).toBeGreaterThan(0)
    expect(schema.entitySets.filter(({ entityTypeName }) => !entities.has(entityTypeName))).toEqual([])
  })
})

test('the sub domains of service.md 1.1 are entity sets under their own names', async () => {
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
