import { expect, test } from 'vitest'
import { request } from 'undici'
import { shareSandbox } from './share-sandbox.ts'
import { fixed, sandboxHeaders } from './start-sandbox.ts'

const { url, call, read, list } = shareSandbox()
const learner = `/V3/LearnerIdentifiers(${fixed.learner})`
const own = encodeURIComponent(
  `Attendee/ExternalID eq ${fixed.learner} and Event/ExternalID eq ${fixed.morning}`,
)
const contextOf = (path: string): string => `${url()}/V3/$metadata#${path}`

/** Returns the path of the mark of the first learner on the first morning of the fixed weeks, for either interface. */
async function markPath(face: 'V2' | 'V3'): Promise<string> {
  const [row] = await list(`/Attendance/V3/AttendanceRecords?$filter=${own}`)
  const root = face === 'V2' ? '/V2/Attendance' : '/Attendance/V3'
  return `${root}/AttendanceRecords(${String(row?.['ExternalID'])})`
}

test('the sandbox returns a single property: primitive, complex or a member of a complex property', async () => {
  const whole = await read(learner)
  const at = `LearnerIdentifiers(${fixed.learner})`
  expect(await read(`${learner}/Surname`)).toEqual({
    '@odata.context': contextOf(`${at}/Surname`),
    value: whole['Surname'],
  })
  expect(await read(`${learner}/CurrentYearGroup`)).toEqual({
    '@odata.context': contextOf(`${at}/CurrentYearGroup`),
    ...(whole['CurrentYearGroup'] as object),
  })
  expect(await read(`${learner}/CurrentYearGroup/Description`)).toEqual({
    '@odata.context': contextOf(`${at}/CurrentYearGroup/Description`),
    value: 'Year 4',
  })
})

test.each([
  [`${learner}/AgeMonths/$value`, /^\d+$/],
  [`${learner}/ExternalID/$value`, new RegExp(`^${fixed.learner}$`)],
  [`${learner}/CurrentYearGroup/Description/$value`, /^Year 4$/],
  [`/V3/LearnerPersonals(${fixed.learner})/BirthCertificateSeen/%24value`, /^(true|false)$/],
])('the sandbox returns %s as plain text', async (path, text) => {
  const reply = await request(`${url()}${path}`, { headers: sandboxHeaders })
  expect([reply.statusCode, reply.headers['content-type']]).toEqual([200, 'text/plain'])
  expect(await reply.body.text()).toMatch(text)
})

test('the sandbox returns an item of a collection by its key, the properties of the item, and the number of items', async () => {
  const path = `/V3/LearnerMedicals(${fixed.learner})/MedicalProviders`
  const [provider = {}] = await list(path)
  const item = `${path}(${String(provider['ExternalID'])})`
  expect(await read(item)).toEqual({
    '@odata.context': contextOf(`LearnerMedicals(${fixed.learner})/MedicalProviders/$entity`),
    ...provider,
  })
  expect(await read(`${item}/Type`)).toMatchObject({ value: provider['Type'] })
  expect(await call('GET', `${path}/$count`)).toEqual({ status: 200, text: '1' })
})

test.each([
  ['V3', '/Attendance/V3', 'Attendee/ExternalID', 2],
  ['V2', '/V2/Attendance', 'Learner', 2],
])(
  'the sandbox counts all records that match a filter on %s, with any page size',
  async (_face, root, path, count) => {
    const start =
      'AttendableEventStart ge 2026-03-02T00:00:00Z and AttendableEventStart lt 2026-03-03T00:00:00Z'
    const filter = encodeURIComponent(`${path} eq ${fixed.learner} and ${start}`)
    const records = `${root}/AttendanceRecords/$count`
    expect(await call('GET', `${records}?$filter=${filter}&$top=1&$skip=1`)).toEqual({
      status: 200,
      text: String(count),
    })
    expect((await call('GET', records)).status).toBe(400)
    expect((await call('PATCH', records)).status).toBe(405)
    expect((await call('GET', `${records}/$count`)).status).toBe(404)
  },
)

test('the sandbox returns single properties of attendance records on V2 and V3', async () => {
  expect(await read(`${await markPath('V3')}/Attendee/ExternalID`)).toMatchObject({ value: fixed.learner })
  expect(await call('GET', `${await markPath('V3')}/Event/Type/$value`)).toEqual({
    status: 200,
    text: 'Attendance.AttendanceSession',
  })
  expect(await read(`${await markPath('V2')}/AttendableEvent`)).toMatchObject({ value: fixed.morning })
  expect(await read(`${await markPath('V2')}/AttendanceHistorys`)).toMatchObject({ value: [] })
  expect(await read(`/Attendance/V3/StatutoryAttendanceSessions(${fixed.morning})/Session`)).toMatchObject({
    value: 'AM',
  })
})

test('the sandbox returns 204 for a property that is null', async () => {
  expect(await call('GET', `${await markPath('V3')}/Qualifier/Comment`)).toEqual({ status: 204, text: '' })
  expect(await call('GET', `${await markPath('V2')}/Comment/$value`)).toEqual({ status: 204, text: '' })
})

test.each([
  `${learner}/Nothing`,
  `${learner}/Surname/Length`,
  `${learner}/CurrentYearGroup/$value`,
  `${learner}/$value`,
  '/V3/LearnerIdentifiers/$value',
  '/V3/LearnerIdentifiers/Surname',
  `/V3/LearnerMedicals(${fixed.learner})/MedicalProviders(${fixed.unknown})`,
  `/V3/LearnerMedicals(${fixed.learner})/MedicalProviders/Type`,
])('the sandbox returns 404 for %s', async (path) => {
  expect((await call('GET', path)).status).toBe(404)
})

test('the sandbox rejects writes to a property', async () => {
  expect(
    (await call('PATCH', `/V3/LearnerPersonals(${fixed.learner})/QuickNote`, 'sandbox', '{}')).status,
  ).toBe(405)
})

test.each([
  ['$filter', "$filter=Surname%20eq%20'x'", ''],
  ['$top', 'top=1', ''],
  ['$skip', '$skip=1', ''],
  ['$count', '$count=true', ''],
  ['$orderby', '$orderby=Surname', ''],
  ['$top', '$top=1', '/Surname'],
  ['$select', '$select=Type', '/CurrentYearGroup'],
])('the sandbox rejects the option %s on a single entity or value: %s', async (option, query, below) => {
  const { status, text } = await call('GET', `${learner}${below}?${query}`)
  expect(status).toBe(400)
  expect(JSON.parse(text)).toMatchObject({
    error: { code: 'InvalidQuery', message: expect.stringContaining('read the collection') as unknown },
  })
  expect(text).toContain(option)
})

test.each([
  learner,
  `${learner}/Surname`,
  '/V3/LearnerIdentifiers?$top=1',
  '/V3/$metadata',
  `/Attendance/V3/AttendanceRecords?$filter=${own}`,
  '/V3/Nothing',
])('the sandbox answers HEAD %s like GET, but without a body', async (path) => {
  const [head, get] = await Promise.all(
    (['HEAD', 'GET'] as const).map(async (method) => {
      const reply = await request(`${url()}${path}`, { method, headers: sandboxHeaders })
      // The connection headers differ, because undici closes the connection after HEAD.
      const ofConnection = ['date', 'connection', 'keep-alive']
      const headers = Object.fromEntries(
        Object.entries(reply.headers).filter(([name]) => !ofConnection.includes(name)),
      )
      return { status: reply.statusCode, headers, text: await reply.body.text() }
    }),
  )
  expect(head).toEqual({ ...get, text: '' })
  expect(Number(head?.headers['content-length'])).toBe(Buffer.byteLength(get?.text ?? ''))
})

test('the sandbox answers HEAD with the allowed methods if the resource does not allow GET', async () => {
  const reply = await request(`${url()}/V3/$batch`, { method: 'HEAD', headers: sandboxHeaders })
  expect([reply.statusCode, reply.headers['allow']]).toEqual([405, 'POST'])
})

test.each([
  ['/V1/Lookup/Learner/LearnerLookups', 'Learner.Indentifier', 'Ethnicity'],
  ['/V1/Lookup/Learner/Ethnicity', 'Learner.Indentifier', 'Ethnicity'],
  ['/stem/v1/lookup/learner/LearnerSENLookups', 'Learner.SEN', 'SENNeedType'],
  ['/V1/Lookup/Learner/SENStatus', 'Learner.SEN', 'SENStatus'],
  ['/V1/Lookup/Attendance/AttendanceLookups', 'Attendance', 'AttendanceCode'],
  ['/V1/Lookup/Attendance/AttendanceCode', 'Attendance', 'AttendanceCode'],
])('the sandbox serves the lookup %s', async (path, domain, type) => {
  const rows = await list(path, `only-${domain}`)
  expect(rows.map(({ LookupType }) => LookupType)).toContain(type)
  if (path.endsWith(type)) expect(new Set(rows.map(({ LookupType }) => LookupType)).size).toBe(1)
  expect((await call('GET', path, `all-but-${domain}`)).status).toBe(403)
  expect((await call('GET', `${path}/$count`)).text).toBe(String(rows.length))
  const key = `ExternalID=${String(rows[0]?.['ExternalID'])},LookupType='${String(rows[0]?.['LookupType'])}'`
  expect(await read(`${path}(${encodeURIComponent(key)})/Code`)).toMatchObject({ value: rows[0]?.['Code'] })
})

test.each([
  '/V1/Lookup/Learner/LearnerIdentifiers',
  '/V1/Lookup/Learner/Nothing',
  '/V1/Lookup/Attendance/Nothing',
  '/V1/Lookup/Attendance/StatutoryAttendanceSessions',
  '/V1/Lookup/Attendance/AttendanceRecords',
])('the sandbox returns 404 for %s, because it is not a lookup', async (path) => {
  expect((await call('GET', path)).status).toBe(404)
})

test.each(['/V1/$batch', '/V3/$batch', '/Attendance/V3/$batch'])(
  'the sandbox accepts a $batch request at %s',
  async (path) => {
    const body = JSON.stringify({
      requests: [
        { id: '1', method: 'GET', url: '/V1/LearnerGrants?$top=1' },
        { id: '2', method: 'GET', url: '/V1/Nothing' },
        { id: '3', method: 'HEAD', url: '/V1/LearnerGrants?$top=1' },
      ],
    })
    const { status, text } = await call('POST', path, 'sandbox', body, {
      'Content-Type': 'application/json',
      Prefer: 'odata.continue-on-error',
    })
    // The reply to HEAD has no body inside a batch either.
    expect(text.match(/"body"/g)).toHaveLength(2)
    expect([status, JSON.parse(text)]).toMatchObject([
      200,
      {
        responses: [
          { id: '1', status: 200, body: { value: [{}] } },
          { id: '2', status: 404 },
          { id: '3', status: 200 },
        ],
      },
    ])
  },
)

test.each([
  ['SIMS.Changes(startDate=@d)?@d=2026-06-09T00:00:00Z', 200],
  ['SIMS.Changes(startDate=@d)?@d=2026-06-09', 200],
  ['SIMS.Changes(startDate=2026-06-09T00:00:00%2B01:00)', 200],
  ['SIMS.Changes(startDate=@d)', 400],
  ['SIMS.Changes(startDate=@d)?@d=5', 400],
  ['SIMS.Changes(startDate=@d)?@e=2026-06-09T00:00:00Z', 400],
  ["SIMS.Changes(startDate='2026-06-09')", 400],
  ["SIMS.Changes(startDate='2026-06-09T00:00:00Z')", 400],
  ['SIMS.Changes(startDate=2026-02-30)', 400],
  ['SIMS.Changes(startDate=2026-06-09T25:00:00Z)', 400],
  ['SIMS.Changes(startDate=null)', 400],
  ['SIMS.Changes(startDate=2026)', 400],
  ['SIMS.Changes()', 400],
])('the sandbox answers %s with %i', async (path, status) => {
  for (const set of ['AttendanceRecords', 'StatutoryAttendanceRecordHistorys'])
    expect([set, (await call('GET', `/Attendance/V3/${set}/${path}`)).status]).toEqual([set, status])
})
