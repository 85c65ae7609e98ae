import { expect, test } from 'vitest'
import { startSandbox } from './start-sandbox.ts'

test.each([
  ['/V3/$metadata', 'LearnerPersonals', 'AttendanceRecords'],
  ['/Learner/v3/%24metadata', 'LearnerSENLookps', 'AttendanceRecords'],
  ['/Attendance/V3/$metadata', 'AttendanceRecords', 'LearnerPersonals'],
  ['/V2/Attendance/$metadata', 'AttendanceRecords', 'LearnerPersonals'],
])('%s describes %s and not %s', async (path, present, absent) => {
  const { request } = await startSandbox()
  const { status, headers, text } = await request('GET', path)
  expect([status, headers['content-type'], headers['odata-version']]).toEqual([200, 'application/xml', '4.0'])
  expect(text).toContain(`<EntitySet Name="${present}"`)
  expect(text).not.toContain(`<EntitySet Name="${absent}"`)
})

test('the legacy metadata has the flat type in its own namespace', async () => {
  const { request } = await startSandbox()
  const { text } = await request('GET', '/V2/Attendance/$metadata')
  expect(text).toContain('Namespace="AttendanceService.Models.OData"')
  expect(text).toContain('Name="SchoolAttendanceCode"')
})

test.each(['/p/V3', '/p/V3/'])('%s lists the sets', async (path) => {
  const { json, url } = await startSandbox()
  const { status, body } = await json('GET', path)
  expect([status, body]).toEqual([
    200,
    {
      '@odata.context': `${url}/p/V3/$metadata`,
      value: expect.arrayContaining([
        { name: 'LearnerIdentifiers', kind: 'EntitySet', url: 'LearnerIdentifiers' },
      ]) as unknown,
    },
  ])
})

test.each([
  ['/V1/Lookup/Learner', ['LearnerLookups', 'LearnerSENLookps']],
  ['/V1/Lookup/Attendance', ['AttendanceLookups']],
  ['/V2', ['LearnerRegistrations']],
  ['/V3', expect.arrayContaining(['LearnerGroups', 'LearnerPersonals', 'LearnerLookups'])],
  ['/Attendance/V3', expect.arrayContaining(['AttendanceLookups', 'StatutoryAttendanceSessions'])],
])('what %s lists can be read below it', async (root, expected) => {
  const { json, request } = await startSandbox()
  const { body } = await json('GET', root)
  const names = (body as { value: { url: string }[] }).value.map(({ url }) => url)
  expect(names.toSorted()).toEqual(expected)
  // A read of AttendanceRecords needs a filter (400).
  for (const name of names)
    expect([200, 400], name).toContain((await json('GET', `${root}/${name}?$top=1`)).status)
  const { text } = await request('GET', `${root}/$metadata`)
  expect([...text.matchAll(/<EntitySet Name="(\w+)"/g)].map(([, name]) => name)).toEqual(names)
})

test('descriptions are read only', async () => {
  const { json } = await startSandbox()
  expect(await json('POST', '/V3/$metadata')).toMatchObject({ status: 405 })
})

test.each([
  [{ Accept: 'application/json' }, '', 'application/json'],
  [{ Accept: 'application/xml' }, '', 'application/xml'],
  [{ Accept: 'text/html' }, '', 'application/xml'],
  [{ Accept: 'text/xml' }, '', 'application/xml'],
  [{ Accept: 'text/html;q=0.8, application/json;q=0.9' }, '', 'application/json'],
  [{ Accept: 'application/xml' }, '?$format=json', 'application/json'],
  [{ Accept: 'application/json' }, '?format=application/xml', 'application/xml'],
])('%j with $metadata%s gets %s', async (headers, query, type) => {
  const { request } = await startSandbox()
  for (const path of ['/V3/$metadata', '/Attendance/V3/$metadata', '/V2/Attendance/$metadata']) {
    const reply = await request('GET', `${path}${query}`, { headers })
    expect([reply.status, reply.headers['content-type'], reply.headers['vary']]).toEqual([
      200,
      type,
      'Accept',
    ])
    expect(reply.text).toMatch(type === 'application/json' ? /^\{"\$Version":"4\.0"/ : /^<\?xml/)
  }
})

test.each([
  [{ Accept: 'text/plain' }, ''],
  [{ Accept: 'application/json' }, '?$format=atom'],
])('%j with $metadata%s is not acceptable', async (headers, query) => {
  const { json } = await startSandbox()
  expect(await json('GET', `/V3/$metadata${query}`, { headers })).toMatchObject({
    status: 406,
    body: { error: { code: 'NotAcceptable' } },
  })
})

test.each([
  ['none', false],
  ['full', true],
])('the service document at the level %s has a context: %s', async (level, hasContext) => {
  const { request, url } = await startSandbox()
  const reply = await request('GET', '/V3/', {
    headers: { Accept: `application/json;odata.metadata=${level}` },
  })
  expect(reply.headers['content-type']).toBe(`application/json; odata.metadata=${level}`)
  const document = JSON.parse(reply.text) as Record<string, unknown>
  expect(document['@odata.context']).toBe(hasContext ? `${url}/V3/$metadata` : undefined)
})
