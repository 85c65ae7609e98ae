import { expect, test } from 'vitest'
import { keyValues, readResource } from '../../../src/sandbox/query/resource.ts'

const A = 'AAAAAAAA-1111-4111-8111-111111111111'

test.each([
  [['Set'], 'Set', false, 0],
  [[`Set(${A})`], 'Set', true, 0],
  [[`Set(${A})`, 'Link'], 'Set', true, 1],
  [['Set', '$count'], 'Set', false, 1],
  [['Set', 'SIMS.Changes(startDate=2026-03-02T00:00:00Z)'], 'Set', false, 1],
])('%j is a path of %s', (segments, set, keyed, rest) => {
  const resource = readResource(segments)
  expect([resource?.set, resource?.key !== undefined, resource?.rest.length]).toEqual([set, keyed, rest])
})

test.each([
  [['Set(']],
  [['Set(a=']],
  [['']],
  [['$batch']],
  [['1Set']],
  [['Set', '']],
  [['Set ']],
  [['Set', ' Link']],
  [[`Set(\t${A})`]],
  [['x'.repeat(5000)]],
])('%j is not a path', (segments) => {
  expect(readResource(segments)).toBeUndefined()
})

test.each([
  [`Set(${A})`, ['ExternalID'], [A.toLowerCase()]],
  [`Set(ExternalID=${A})`, ['ExternalID'], [A.toLowerCase()]],
  [
    `Set(GroupType=SIMS.GroupTypeEnum'House',ExternalID=${A})`,
    ['ExternalID', 'GroupType'],
    [A.toLowerCase(), 'House'],
  ],
  [`Set(ExternalID=${A},GroupType='House')`, ['ExternalID', 'GroupType'], [A.toLowerCase(), 'House']],
  [`Set(Other=${A})`, ['ExternalID'], undefined],
  [`Set(${A})`, ['ExternalID', 'GroupType'], undefined],
  [`Set(ExternalID=${A},Other='House')`, ['ExternalID', 'GroupType'], undefined],
  [
    `Set(ExternalID=${A},GroupType=SIMS.GroupTypeEnum'House,YearGroup')`,
    ['ExternalID', 'GroupType'],
    undefined,
  ],
])('the key of %s', (path, names, values) => {
  expect(keyValues(readResource([path])?.key ?? [], names)).toEqual(values)
})
