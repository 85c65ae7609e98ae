import { describe, expect, test } from 'vitest'

import { attendanceV2Model } from '../../src/model/attendance.ts'
import { serviceModel } from '../../src/model/service-model.ts'
import type { ComplexType, ServiceModel, TypeRef } from '../../src/odata/csdl.ts'
import { createModelIndex } from '../../src/odata/typed/model-index.ts'

const shapeOf = ({ type, collection }: TypeRef): string => (collection ? `Collection(${type})` : type)

const declared = (model: ServiceModel): readonly ComplexType[] =>
  model.schemas.flatMap((schema) => [...schema.complexTypes, ...schema.entityTypes])

describe('the service model', () => {
  test('has keys as stated: ExternalID, and two properties where section 2.2 says so', () => {
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

  test('has the change functions of service-facts 4', () => {
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

  test('knows the group types of service-facts 15 under the alias of the service', () => {
    const type = createModelIndex(serviceModel).findType('SIMS.GroupTypeEnum')
    expect(type?.kind === 'enum' && [...type.valueByMember.keys()]).toEqual([
      'YearGroup',
      'PrimaryClass',
      'House',
    ])
  })
})

test('the V2 attendance set is flat, with ids as guids, in the order of its replies', () => {
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

/** Rules of CSDL XML 4.01 that a reader of `$metadata` may insist on. */
describe.each([
  ['V3', serviceModel],
  ['V2', attendanceV2Model],
] as const)('the %s model is valid CSDL', (_name, model) => {
  const types = declared(model)

  test('every name in a schema is given once', () => {
    for (const { enumTypes, complexTypes, entityTypes, functions } of model.schemas) {
      const names = [...enumTypes, ...complexTypes, ...entityTypes].map(({ name }) => name)
      expect(names.filter((name, position) => names.indexOf(name) !== position)).toEqual([])
      expect(functions.filter(({ name }) => names.includes(name))).toEqual([])
    }
    const sets = model.container.entitySets.map(({ name }) => name)
    expect(new Set(sets).size).toBe(sets.length)
  })

  test('members are unique and none is named as its type', () => {
    for (const { name, properties, navigation } of types) {
      const members = [...properties, ...navigation].map((member) => member.name)
      expect(new Set(members).size, name).toBe(members.length)
      expect(members).not.toContain(name)
    }
  })
})
