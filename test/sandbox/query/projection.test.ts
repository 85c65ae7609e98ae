import { expect, test } from 'vitest'
import { createModelIndex, parseQuery } from '../../../src/odata/index.ts'
import { compileQuery } from '../../../src/sandbox/query/compile-query.ts'
import { findEntities } from '../../../src/sandbox/query/compiled-query.ts'
import type { Entity } from '../../../src/sandbox/query/compiled-query.ts'
import { servedModel } from '../../../src/sandbox/served-model.ts'

const context = { index: createModelIndex(servedModel), now: Date.parse('2026-06-10T00:00:00Z') }
const condition = (summary: string, end: string | null) => ({
  ExternalID: summary,
  Summary: summary,
  EndDate: end,
})
const entity: Entity = {
  ExternalID: '1',
  NHSNumber: '999',
  IsDisabled: true,
  MedicalConditions: [condition('b', null), condition('a', '2026-01-01T00:00:00Z'), condition('c', null)],
  Disabilities: [],
}
const project = (query: string): unknown =>
  compileQuery(parseQuery(query), 'Svc.LearnerMedical', context).project(entity)

test.each([
  ['', { ExternalID: '1', NHSNumber: '999', IsDisabled: true }],
  ['$select=*', { ExternalID: '1', NHSNumber: '999', IsDisabled: true }],
  ['$select=IsDisabled,ExternalID', { ExternalID: '1', IsDisabled: true }],
  ['$select=IsDisabled&$expand=Disabilities', { IsDisabled: true, Disabilities: [] }],
  [
    '$select=NHSNumber&$expand=MedicalConditions($select=Summary)',
    {
      NHSNumber: '999',
      MedicalConditions: [{ Summary: 'b' }, { Summary: 'a' }, { Summary: 'c' }],
    },
  ],
  [
    '$select=NHSNumber&$expand=MedicalConditions($select=Summary;$orderby=Summary;$skip=1;$top=1;$count=true)',
    {
      NHSNumber: '999',
      'MedicalConditions@odata.count': 3,
      MedicalConditions: [{ Summary: 'b' }],
    },
  ],
  [
    '$select=NHSNumber&$expand=MedicalConditions($select=Summary;$filter=EndDate eq null)',
    {
      NHSNumber: '999',
      MedicalConditions: [{ Summary: 'b' }, { Summary: 'c' }],
    },
  ],
  [
    '$select=NHSNumber&$expand=MedicalConditions/$count',
    { NHSNumber: '999', 'MedicalConditions@odata.count': 3 },
  ],
])('%s', (query, expected) => {
  expect(project(query)).toEqual(expected)
})

test('a star expands every link, those without data too', () => {
  expect(project('$select=NHSNumber&$expand=*')).toMatchObject({
    Disabilities: [],
    MedicalProviders: null,
    MedicalConditions: [{}, {}, {}],
  })
})

test.each(['$expand=MedicalConditions/$ref', '$expand=Nothing', '$select=Nothing', '$expand=*($levels=2)'])(
  '%s is refused',
  (query) => {
    expect(() => project(query)).toThrow(expect.objectContaining({ code: 'ADP_QUERY' }))
  },
)

test('a query finds, orders and counts', () => {
  const entities = ['999', '111', '555'].map((NHSNumber) => ({ ...entity, NHSNumber }))
  const query = compileQuery(
    parseQuery("$filter=NHSNumber ne '111'&$orderby=NHSNumber&$skip=1&$top=1&$count=true"),
    'Svc.LearnerMedical',
    context,
  )
  expect(findEntities(query, entities).map((found) => found['NHSNumber'])).toEqual(['555', '999'])
  expect([query.skip, query.top, query.count]).toEqual([1, 1, true])
})

test('parts of complex values can be selected', () => {
  const query = compileQuery(
    parseQuery('$select=CurrentHouse/Description,CurrentYearGroup'),
    'Svc.LearnerIdentifier',
    context,
  )
  const group = { Description: 'Oak', ExternalID: 'x', Type: 't' }
  expect(query.project({ CurrentHouse: group, CurrentYearGroup: group })).toEqual({
    CurrentYearGroup: group,
    CurrentHouse: { Description: 'Oak' },
  })
  expect(query.project({ CurrentHouse: null })).toEqual({ CurrentHouse: null })
})
