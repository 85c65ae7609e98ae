import { expect, test } from 'vitest'
import { oneSandbox } from './start-sandbox.ts'

const cleanSandbox = oneSandbox()

test.each([
  ['/V3/$metadata', 'LearnerPersonals', 'AttendanceRecords'],
  ['/Learner/v3/%24metadata', 'LearnerSENLookps', 'AttendanceRecords'],
  ['/Attendance/V3/$metadata', 'AttendanceRecords', 'LearnerPersonals'],
  ['/V2/Attendance/$metadata', 'AttendanceRecords', 'LearnerPersonals'],
])('the sandbox describes at %s the entity set %s, and not %s', async (path, present, absent) => {
  const { request } = await cleanSandbox()
  const { status, headers, text } = await request('GET', path)
  expect([status, headers['content-type'], headers['odata-version']]).toEqual([200, 'application/xml', '4.0'])
  expect(text).toContain(`<EntitySet Name="${present}"`)
  expect(text).not.toContain(`<EntitySet Name="${absent}"`)
})

test.each([
  ['/V1/Lookup/Learner', ['LearnerLookups', 'LearnerSENLookps']],
  ['/V1/Lookup/Attendance', ['AttendanceLookups']],
  ['/V2', ['LearnerRegistrations']],
  ['/V3', expect.arrayContaining(['LearnerGroups', 'LearnerPersonals', 'LearnerLookups'])],
  ['/Attendance/V3', expect.arrayContaining(['AttendanceLookups', 'StatutoryAttendanceSessions'])],
])(
  'the sandbox lists in the service document of %s only entity sets that this address serves',
  async (root, expected) => {
    const { json, request } = await cleanSandbox()
    const { body } = await json('GET', root)
    const names = (body as { value: { url: string }[] }).value.map(({ url }) => url)
    expect(names.toSorted()).toEqual(expected)
    // A read of AttendanceRecords without a filter gets 400.
    for (const name of names)
      expect([200, 400], name).toContain((await json('GET', `${root}/${name}?$top=1`)).status)
    const { text } = await request('GET', `${root}/$metadata`)
    expect([...text.matchAll(/<EntitySet Name="(\w+)"/g)].map(([, name]) => name)).toEqual(names)
  },
)

test('the sandbox rejects writes to $metadata and the service document', async () => {
  const { json } = await cleanSandbox()
  expect(await json('POST', '/V3/$metadata')).toMatchObject({ status: 405 })
})

test.each([
  [{ Accept: 'application/json' }, '?format=application/xml', 200],
  [{ Accept: 'text/html' }, '', 200],
  [{ Accept: 'application/xml' }, '?$format=json', 406],
])(
  'the sandbox answers a request for $metadata with the headers %j and the query "%s" with %i',
  async (headers, query, status) => {
    const { request } = await cleanSandbox()
    for (const path of ['/V3/$metadata', '/Attendance/V3/$metadata', '/V2/Attendance/$metadata']) {
      const reply = await request('GET', `${path}${query}`, { headers })
      expect(reply.status).toBe(status)
      expect(reply.text).toMatch(status === 200 ? /^<\?xml/ : /"code":"NotAcceptable"/)
    }
  },
)

test.each([
  ['none', false],
  ['full', true],
])(
  'the sandbox adds a context to the service document except at the metadata level none (level %s, context %s)',
  async (level, hasContext) => {
    const { request, url } = await cleanSandbox()
    const reply = await request('GET', '/V3/', {
      headers: { Accept: `application/json;odata.metadata=${level}` },
    })
    expect(reply.headers['content-type']).toBe(`application/json; odata.metadata=${level}`)
    const document = JSON.parse(reply.text) as Record<string, unknown>
    expect(document['@odata.context']).toBe(hasContext ? `${url}/V3/$metadata` : undefined)
  },
)
