import { expect, test } from 'vitest'
import {
  fixed,
  flatMark,
  jsonOf,
  nestedMark,
  ownMark,
  recordsOf,
  oneSandbox,
  startSandbox,
} from './start-sandbox.ts'

const cleanSandbox = oneSandbox()

type Members = Record<string, unknown>
const none = { Accept: 'application/json;odata.metadata=none' }
const full = { Accept: 'application/json;odata.metadata=full' }
const records = recordsOf.V3
const flatType = '#AttendanceService.Models.OData.AttendanceRecord'

/** Returns the names of all annotations at any depth, without the properties that they belong to. */
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
] as const)(
  'under odata.metadata=none, the sandbox omits annotations that a client does not need: %s',
  async (path, expected) => {
    const { request } = await cleanSandbox()
    const reply = await request('GET', path, { headers: none })
    expect([reply.status, reply.headers['content-type']]).toEqual([
      200,
      'application/json; odata.metadata=none',
    ])
    expect(annotations(JSON.parse(reply.text))).toEqual(expected)
    const minimal = await request('GET', path)
    expect(minimal.headers['content-type']).toBe('application/json; odata.metadata=minimal')
    expect(annotations(JSON.parse(minimal.text))).toContain('@odata.context')
  },
)

test('under odata.metadata=none, the sandbox keeps the next link, even if $format names the level in its short form', async () => {
  const { request } = await startSandbox({ pageSize: 2 })
  for (const format of ['application/json;odata.metadata=none', 'application/json;metadata=none']) {
    const path = `/V3/LearnerIdentifiers?$format=${encodeURIComponent(format)}`
    const reply = await request('GET', path, { headers: full })
    expect(annotations(JSON.parse(reply.text))).toEqual(['@odata.nextLink'])
  }
})

test('the sandbox prefers $format to Accept even if $format names no metadata level', async () => {
  const { request } = await cleanSandbox()
  const reply = await request('GET', `/V3/LearnerIdentifiers(${fixed.learner})?$format=json`, {
    headers: full,
  })
  expect(reply.headers['content-type']).toBe('application/json; odata.metadata=minimal')
})

test('under odata.metadata=full, the sandbox shows the type of each entity, including expanded entities', async () => {
  const { json } = await cleanSandbox()
  const path = `/V3/LearnerMedicals(${fixed.learner})?$expand=MedicalProviders&$select=NHSNumber`
  const { body } = await json('GET', path, { headers: full })
  expect(body).toMatchObject({
    '@odata.type': '#Svc.LearnerMedical',
    MedicalProviders: [{ '@odata.type': '#Svc.MedicalProviderRef' }],
  })
  expect(annotations(body)).toEqual(['@odata.context', '@odata.type'])
})

test('the sandbox applies the requested metadata level to replies to POST on V2 and V3', async () => {
  const { json } = await cleanSandbox()
  const post = async (path: string, mark: object, level: Record<string, string>) => {
    const { headers, body } = jsonOf(mark)
    return (await json('POST', path, { headers: { ...headers, ...level }, body })).body
  }
  expect(annotations(await post(records, nestedMark(), none))).toEqual([])
  expect(await post(records, nestedMark(), full)).toMatchObject({ '@odata.type': '#Svc.AttendanceRecord' })
  expect(annotations(await post(recordsOf.V2, flatMark(), none))).toEqual([])
  expect(annotations(await post(recordsOf.V2, flatMark(), full))).toEqual(['@odata.type'])
})

test('under odata.metadata=full, the sandbox adds the type to flat V2 records, in pages and single', async () => {
  const { json, url } = await cleanSandbox()
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
