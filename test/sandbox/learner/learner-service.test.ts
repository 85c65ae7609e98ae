import { expect, test } from 'vitest'

import { fixed, oneSandbox, startSandbox } from '../start-sandbox.ts'

const cleanSandbox = oneSandbox()

const rowsOf = (body: unknown) => (body as { value: Record<string, unknown>[] }).value

test('the sandbox returns current learners, leavers and future learners', async () => {
  const { rows } = await cleanSandbox()
  const states = ['Current', 'Leaver', 'Future']
  const found = await Promise.all(
    states.map((state) => rows(`/V3/LearnerIdentifiers?$filter=OnRollState eq '${state}'`)),
  )
  expect(found.map(({ length }) => length)).toEqual([30, 2, 1])
  expect(found[0]?.[0]).toMatchObject({
    ExternalID: fixed.learner,
    CurrentYearGroup: { Description: 'Year 4', Type: 'PastoralGroup.Definition.YearGroup' },
    CurrentPrimaryClass: { Description: '4B', Type: 'PastoralGroup.Definition.PrimaryClass' },
  })
  expect(found[1]?.[0]).toMatchObject({ CurrentYearGroup: null })
})

test('the sandbox combines $filter, $select, $orderby, $top and $count over two pages', async () => {
  const { json, url } = await startSandbox({ pageSize: 4 })
  const options =
    "$filter=OnRollState%20eq%20'Current'&$select=Surname,CurrentHouse/Description&$orderby=Surname&$top=6&$count=true"
  const first = (await json('GET', `/V3/LearnerIdentifiers?${options}`)).body as Record<string, unknown>
  expect(first).toMatchObject({
    '@odata.context': `${url}/V3/$metadata#LearnerIdentifiers(Surname,CurrentHouse/Description)`,
    '@odata.count': 30,
  })
  const next = String(first['@odata.nextLink'])
  expect(next.startsWith(`${url}/V3/LearnerIdentifiers?`)).toBe(true)
  const second = (await json('GET', next.slice(url.length))).body as Record<string, unknown>
  const surnames = [...rowsOf(first), ...rowsOf(second)].map((row) => String(row['Surname']))
  expect(surnames).toHaveLength(6)
  expect(surnames).toEqual([...surnames].sort())
  expect(Object.keys(rowsOf(first)[0] ?? {})).toEqual(['Surname', 'CurrentHouse'])
  expect(second['@odata.nextLink']).toBeUndefined()
  expect(second['@odata.count']).toBeUndefined()
})

test('the sandbox filters, orders, counts and limits an expanded collection', async () => {
  const { rows } = await cleanSandbox()
  const expand =
    'LearnerContactRelationships($filter=Priority le 2;$orderby=Priority desc;$top=1;$count=true;$select=Priority)'
  const path = `/V1/LearnerContactDetails?$expand=${expand}&$filter=LearnerContactRelationships/$count eq 2&$top=1`
  expect(await rows(path)).toMatchObject([
    { 'LearnerContactRelationships@odata.count': 2, LearnerContactRelationships: [{ Priority: 2 }] },
  ])
})

test('the sandbox returns a single learner entity, one of its collections, and the number of entities', async () => {
  const sandbox = await cleanSandbox()
  expect(
    (await sandbox.json('GET', `/V3/LearnerPersonals(${fixed.learner})?$select=LegalSurname`)).body,
  ).toEqual({
    '@odata.context': `${sandbox.url}/V3/$metadata#LearnerPersonals(LegalSurname)/$entity`,
    LegalSurname: 'Davies',
  })
  expect(await sandbox.rows(`/V3/LearnerMedicals(${fixed.learner})/MedicalProviders`)).toHaveLength(1)
  const count = await sandbox.request(
    'GET',
    "/V3/LearnerIdentifiers/$count?$filter=OnRollState%20eq%20'Current'",
  )
  expect([count.text, count.headers['content-type']]).toEqual(['30', 'text/plain'])
})

test.each([
  ['GET', '/V3/Nothing', 404],
  ['GET', '/V3/constructor', 404],
  ['GET', '/V4/LearnerMedicals', 404],
  ['GET', '/V3/%zz', 404],
  ['GET', '/%zz/V3/LearnerMedicals', 404],
  ['GET', '/V2/LearnerMedicals', 404],
  ['GET', `/V3/LearnerMedicals(${fixed.unknown})`, 404],
  ['GET', `/V3/LearnerMedicals(${fixed.learner})/Nothing`, 404],
  ['GET', '/V3/LearnerMedicals?$expand=Nothing', 400],
  ['GET', '/V3/LearnerMedicals?$expand=Disabilities,Disabilities', 400],
  ['GET', '/V3/LearnerMedicals?$expand=Disabilities/$ref', 400],
  ['GET', '/V3/LearnerMedicals?$select=Nothing', 400],
  ['GET', '/V3/LearnerMedicals?$search=x', 400],
  ['GET', '/V3/LearnerMedicals?$format=xml', 400],
  ['GET', '/V3/LearnerMedicals?$top=-1', 400],
  ['GET', '/V3/LearnerMedicals?$filter=NHSNumber%20eq%201', 400],
  ['GET', '/V3/LearnerGrants?$expand=YoungCarerPeriods', 400],
  ['POST', '/V3/LearnerMedicals', 405],
  ['PATCH', `/V3/LearnerMedicals(${fixed.learner})`, 405],
  ['DELETE', `/V3/LearnerPersonals(${fixed.learner})`, 405],
] as const)('the sandbox answers %s %s with %i', async (method, path, status) => {
  const { json } = await cleanSandbox()
  expect(await json(method, path)).toMatchObject({ status, body: { error: {} } })
})
