import { describe, expect, test } from 'vitest'

import { attendanceV2Model } from '../../src/model/attendance.ts'
import { serviceModel } from '../../src/model/service-model.ts'
import type { ComplexType, ServiceModel, TypeRef } from '../../src/odata/csdl.ts'
import { createModelIndex } from '../../src/odata/typed/model-index.ts'

const shapeOf = ({ type, collection }: TypeRef): string => (collection ? `Collection(${type})` : type)

const declared = (model: ServiceModel): readonly ComplexType[] =>
  model.schemas.flatMap((schema) => [...schema.complexTypes, ...schema.entityTypes])

describe('the V3 service model', () => {
  test('has the entity keys of service.md 2.2: ExternalID, and a second property for the types that the section names', () => {
    const keys = serviceModel.schemas.flatMap(({ entityTypes }) =>
      entityTypes.map(({ name, key }) => [name, key] as const),
    )
    const composite = keys.filter(([, key]) => key.join() !== 'ExternalID')
    expect(composite).toEqual([
      ['LearnerGroup', ['ExternalID', 'GroupType']],
      ['LearnerLookup', ['ExternalID', 'LookupType']],
      ['LearnerSENLookup', ['ExternalID', 'LookupType']],
      ['AttendanceLookup', ['ExternalID', 'LookupType']],
    ])
  })

  test('declares the Changes functions of service-facts 4', () => {
    const bound = serviceModel.schemas
      .flatMap(({ functions }) => functions)
      .map(({ name, parameters: [binding, parameter] }) => [
        name,
        binding?.type,
        binding?.collection,
        parameter,
      ])
    const startDate = { name: 'startDate', type: 'Edm.DateTimeOffset', collection: false, nullable: false }
    expect(bound).toEqual(
      ['Svc.AttendanceRecord', 'Svc.StatutoryAttendanceRecordHistory'].map((type) => [
        ...['Changes', type, true],
        startDate,
      ]),
    )
  })

  test('declares the enum SIMS.GroupTypeEnum with the members of service-facts 15', () => {
    const type = createModelIndex(serviceModel).findType('SIMS.GroupTypeEnum')
    expect(type?.kind === 'enum' && [...type.valueByMember.keys()]).toEqual([
      'YearGroup',
      'PrimaryClass',
      'House',
    ])
  })
})

test('the V2 model declares the attendance set with flat records, guids as ids and the property order of its replies', () => {
  const record = attendanceV2Model.schemas[0]?.entityTypes[0]
  expect(attendanceV2Model.schemas[0]?.namespace).toBe('AttendanceService.Models.OData')
  expect(record?.name).toBe('AttendanceRecord')
  expect(record?.properties.map((property) => `${property.name} ${shapeOf(property)}`)).toEqual([
    'ExternalID Edm.Guid',
    'Present Edm.Boolean',
    'Absent Edm.Boolean',
    'RecordedOn Edm.DateTimeOffset',
    'ChangeProcessName Edm.String',
    'AttendableEventStart Edm.DateTimeOffset',
    'RecordedBy Edm.Guid',
    'Learner Edm.Guid',
    'AttendableEvent Edm.Guid',
    'SchoolAttendanceCode Edm.Guid',
    'MinutesLate Edm.Int32',
    'Comment Edm.String',
    'AttendanceHistorys Collection(AttendanceService.Models.OData.AttendanceHistory)',
  ])
})

/** Rules of CSDL XML 4.01 that a reader of `$metadata` may enforce. */
describe.each([
  ['V3', serviceModel],
  ['V2', attendanceV2Model],
] as const)('the CSDL of the %s model', (_name, model) => {
  const types = declared(model)

  test('declares each name in a schema only once', () => {
    for (const { enumTypes, complexTypes, entityTypes, functions } of model.schemas) {
      const names = [...enumTypes, ...complexTypes, ...entityTypes].map(({ name }) => name)
      expect(names.filter((name, position) => names.indexOf(name) !== position)).toEqual([])
      expect(functions.filter(({ name }) => names.includes(name))).toEqual([])
    }
    const sets = model.container.entitySets.map(({ name }) => name)
    expect(new Set(sets).size).toBe(sets.length)
  })

  test('gives the members of a type unique names that differ from the name of the type', () => {
    for (const { name, properties, navigation } of types) {
      const members = [...properties, ...navigation].map((member) => member.name)
      expect(new Set(members).size, name).toBe(members.length)
      expect(members).not.toContain(name)
    }
  })
})
