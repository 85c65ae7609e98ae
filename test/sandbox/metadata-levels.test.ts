import { expect, test } from 'vitest'
import {
  anyText,
  fixed,
  flatMark,
  jsonOf,
  nestedMark,
  ownMark,
  recordsOf,
  startSandbox,
} from './start-sandbox.ts'

type Members = Record<string, unknown>
const none = { Accept: 'application/json;odata.metadata=none' }
const full = { Accept: 'application/json;odata.metadata=full' }
const records = recordsOf.V3
const flatType = '#AttendanceService.Models.OData.AttendanceRecord'

/** The names of all annotations at any depth, without the property that they are of. */
function annotations(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return []
  const own = Object.keys(value).filter((name) => name.includes('@'))
  return [
    ...new Set([
      ...own.map((name) => name.slice(name.indexOf('@'))),
      ...Object.values(value).flatMap(annotations),
    ]),
  ]
}

test.each([
  ['/V3/LearnerIdentifiers?$top=1&$count=true', ['@odata.count']],
  ['/V3/LearnerMedicals?$expand=MedicalProviders($count=true)&$top=1', ['@odata.count']],
  [`/V3/LearnerIdentifiers(${fixed.learner})`, []],
  [`/V3/LearnerIdentifiers(${fixed.learner})/CurrentYearGroup`, []],
  [`${records}?$filter=${ownMark.V3}`, []],
  ['/Attendance/V3/StatutoryAttendanceSessions?$top=1', []],
  [`/V2/Attendance/AttendanceRecords?$filter=${ownMark.V2}`, []],
] as const)('odata.metadata=none leaves out what a client can do without: %s', async (path, expected) => {
  const { request } = await startSandbox()
  const reply = await request('GET', path, { headers: none })
  expect([reply.status, reply.headers['content-type']]).toEqual([
    200,
    'application/json; odata.metadata=none',
  ])
  expect(annotations(JSON.parse(reply.text))).toEqual(expected)
  const minimal = await request('GET', path)
  expect(minimal.headers['content-type']).toBe('application/json; odata.metadata=minimal')
  expect(annotations(JSON.parse(minimal.text))).toContain('@odata.context')
})

test('none keeps the link to the next page; $format wins over Accept, in the short form of OData 4.01 too', async () => {
  const { request } = await startSandbox({ pageSize: 2 })
  for (const format of ['application/json;odata.metadata=none', 'application/json;metadata=none']) {
    const path = `/V3/LearnerIdentifiers?$format=${encodeURIComponent(format)}`
    const reply = await request('GET', path, { headers: full })
    expect(annotations(JSON.parse(reply.text))).toEqual(['@odata.nextLink'])
  }
})

test('$format wins over Accept where it names no level either', async () => {
  const { request } = await startSandbox()
  const reply = await request('GET', `/V3/LearnerIdentifiers(${fixed.learner})?$format=json`, {
    headers: full,
  })
  expect(reply.headers['content-type']).toBe('application/json; odata.metadata=minimal')
})

test('odata.metadata=full shows types, ids and links of an entity', async () => {
  const { json, url } = await startSandbox()
  const { body } = await json(
    'GET',
    `/V3/LearnerIdentifiers(${fixed.learner})?$select=Surname,AgeMonths,CurrentYearGroup,DateOfApplication`,
    { headers: full },
  )
  const path = `LearnerIdentifiers(${fixed.learner})`
  expect(body).toEqual({
    '@odata.context': `${url}/V3/$metadata#LearnerIdentifiers/$entity`,
    '@odata.type': '#Svc.LearnerIdentifier',
    '@odata.id': `${url}/V3/${path}`,
    '@odata.editLink': path,
    Surname: anyText,
    'AgeMonths@odata.type': '#Int32',
    AgeMonths: expect.any(Number) as unknown,
    CurrentYearGroup: {
      '@odata.type': '#Svc.CurrentGroupRef',
      Description: 'Year 4',
      'ExternalID@odata.type': '#Guid',
      ExternalID: anyText,
      Type: 'PastoralGroup.Definition.YearGroup',
    },
    'DateOfApplication@odata.type': '#DateTimeOffset',
    DateOfApplication: anyText,
  })
})

test('every id that full shows can be read, inside an entity and across sets', async () => {
  const { json, url } = await startSandbox()
  const paths = [
    '/V3/LearnerMedicals?$top=2&$expand=MedicalProviders',
    `/V3/LearnerMedicals(${fixed.learner})/MedicalProviders`,
    '/V1/LearnerContactDetails?$top=1&$expand=Telephones',
    "/Learner/V3/LearnerGroups?$top=1&$expand=LearnerMedicals($top=1;$expand=MedicalProviders)&$filter=ShortName%20eq%20'4'",
    `${records}?$filter=${ownMark.V3}`,
    '/Attendance/V3/AttendanceLookups?$top=2',
  ]
  for (const path of paths) {
    const { status, body } = await json('GET', path, { headers: full })
    expect([path, status]).toEqual([path, 200])
    const found = [...JSON.stringify(body).matchAll(/"@odata\.id":"([^"]+)"/g)].map(([, id = '']) => id)
    expect(found.length).toBeGreaterThan(0)
    for (const id of found) {
      const target = encodeURI(id.slice(url.length))
      expect([id, (await json('GET', target)).status]).toEqual([id, 200])
    }
  }
})

test('links of navigation properties lead to them', async () => {
  const { json, url } = await startSandbox()
  const { body } = await json('GET', `/V3/LearnerMedicals(${fixed.learner})`, { headers: full })
  const link = String((body as Members)['MedicalProviders@odata.navigationLink'])
  expect(link).toBe(`${url}/V3/LearnerMedicals(${fixed.learner})/MedicalProviders`)
  expect((await json('GET', link.slice(url.length))).status).toBe(200)
})

test('an answer to a POST has the level that was asked for, on both faces', async () => {
  const { json } = await startSandbox()
  const post = async (path: string, mark: object, level: Record<string, string>) => {
    const { headers, body } = jsonOf(mark)
    return (await json('POST', path, { headers: { ...headers, ...level }, body })).body
  }
  expect(annotations(await post(records, nestedMark(), none))).toEqual([])
  expect(await post(records, nestedMark(), full)).toMatchObject({
    '@odata.type': '#Svc.AttendanceRecord',
    'ExternalID@odata.type': '#Guid',
  })
  expect(annotations(await post(recordsOf.V2, flatMark(), none))).toEqual([])
  expect(annotations(await post(recordsOf.V2, flatMark(), full))).toEqual(['@odata.type'])
})

test('at the full level a flat record has its type, in pages and alone', async () => {
  const { json, url } = await startSandbox()
  const page = (
    await json('GET', `/V2/Attendance/AttendanceRecords?$filter=${ownMark.V2}`, { headers: full })
  ).body as { value: Members[] }
  expect(annotations(page)).toEqual(['@odata.context', '@odata.type'])
  expect(Object.keys(page.value[0] ?? {}).slice(0, 2)).toEqual(['@odata.type', 'ExternalID'])
  const id = String(page.value[0]?.['ExternalID'])
  const single = await json('GET', `/V2/Attendance/AttendanceRecords(${id})`, { headers: full })
  const context = `${url}/V2/Attendance/$metadata#AttendanceRecords/$entity`
  expect(single.body).toEqual({ '@odata.context': context, ...page.value[0] })
  expect(page.value[0]?.['@odata.type']).toBe(flatType)
})
