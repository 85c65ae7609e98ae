import { expect, onTestFinished, test } from 'vitest'
import { createLearnerEntities, findLearnerSet } from '../../../src/sandbox/learner/learner-entities.ts'
import { openSchool } from '../../../src/sandbox/open-school.ts'
import { readOptions } from '../../../src/sandbox/options.ts'
import { fixed, testNow } from '../start-sandbox.ts'

function open() {
  const school = openSchool(
    readOptions({}),
    () => Date.parse(testNow),
    () => undefined,
  )
  onTestFinished(() => school.database.close())
  return { school, entities: createLearnerEntities(school) }
}

test.each([
  ['LearnerIdentifiers', 'LearnerIdentifiers'],
  ['learneridentifiers', 'LearnerIdentifiers'],
  ['LearnerRegistations', 'LearnerRegistrations'],
  ['LearnerSENLookps', 'LearnerSENLookps'],
  ['LearnerSENLookups', 'LearnerSENLookps'],
  ['Nothing', undefined],
])('the name %s means the set %s', (name, set) => {
  expect(findLearnerSet(name)?.name).toBe(set)
})

test('entities are read once and again after a change', () => {
  const { school, entities } = open()
  const before = entities.all('LearnerPersonals')
  expect(entities.all('LearnerPersonals')).toBe(before)
  const found = entities.byKey('LearnerPersonals', fixed.learner)
  if (found === undefined) throw new TypeError('no learner')
  school.entities.update('LearnerPersonals', { ...found, body: '{"LegalSurname":"New"}' })
  expect(entities.byKey('LearnerPersonals', fixed.learner)?.entity).toEqual({ LegalSurname: 'New' })
  school.entities.reset()
  expect(entities.all('LearnerPersonals')).toEqual(before)
})

test('a group shows its members where they are asked for, and nowhere else', () => {
  const { entities } = open()
  const group = entities.all('LearnerGroups').find(({ key }) => key.endsWith(',YearGroup'))
  expect(Object.keys(group?.entity ?? {})).toEqual([
    'ExternalID',
    'GroupType',
    'ShortName',
    'FullName',
    'DisplayOrder',
  ])
  const members = group?.entity['LearnerIdentifiers']
  expect(members).toHaveLength(30)
  expect(members).toMatchObject([
    { ExternalID: fixed.learner },
    { ExternalID: fixed.otherLearner },
    ...Array.from({ length: 28 }, () => ({})),
  ])
})
