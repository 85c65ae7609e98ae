import { parse } from '@sap-ux/edmx-parser'
import { expect, test } from 'vitest'
import { documentedTypes, type FieldTable } from '../model/documented-types.ts'
import { startSandbox } from '../sandbox/start-sandbox.ts'

/** The part of what the reader makes of a type that is looked at; its own types come from a package that it does not bring along. */
interface Structured {
  readonly name: string
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
  readonly entityTypes: readonly Structured[]
  readonly complexTypes: readonly Structured[]
}

/** Links that the sandbox adds, so that the expand list of service.md 1.1 for Grants works. */
const welfareLinksOfGrants = {
  IncareDetails: 'nav Collection(Svc.LearnerInCareDetail)',
  PersonalEducationPlans: 'nav Collection(Svc.PersonalEducationPlan)',
  ChildProtectionPlans: 'nav Collection(Svc.LearnerChildProtectionPlan)',
}

function fieldsOf({ entityProperties = [], properties = [], navigationProperties }: Structured): FieldTable {
  const fields = [...entityProperties, ...properties].map(({ name, type, nullable = true }) => {
    const required = !nullable && !type.startsWith('Collection(')
    return [name, `${type}${required ? ' required' : ''}`] as const
  })
  const links = navigationProperties.map(({ name, targetTypeName, isCollection, containsTarget }) => {
    const type = isCollection ? `Collection(${targetTypeName})` : targetTypeName
    return [name, `${containsTarget ? 'contained' : 'nav'} ${type}`] as const
  })
  return Object.fromEntries<string>([...fields, ...links])
}

test.each(['/V3/$metadata', '/Attendance/V3/$metadata'])(
  'a public reader finds in %s every field of service.md 2 with its type, and whether it may be null',
  async (path) => {
    const { request } = await startSandbox()
    const { schema } = parse((await request('GET', path)).text) as { schema: Schema }
    const read = new Map([...schema.entityTypes, ...schema.complexTypes].map((type) => [type.name, type]))
    const found = [...documentedTypes.keys()].map((name) => {
      const type = read.get(name)
      return [name, type === undefined ? 'missing' : fieldsOf(type)] as const
    })
    const grants = { ...documentedTypes.get('LearnerGrant'), ...welfareLinksOfGrants }
    const expected = { ...Object.fromEntries(documentedTypes), LearnerGrant: grants }
    expect(Object.fromEntries(found)).toEqual(expected)
    expect(found.length).toBeGreaterThan(90)
  },
)
