import { expect, test } from 'vitest'
import { oneSandbox, startSandbox } from './start-sandbox.ts'

const cleanSandbox = oneSandbox()

const missing =
  'Access denied due to missing subscription key. Make sure to include subscription key when making requests to an API.'
const invalid =
  'Access denied due to invalid subscription key. Make sure to provide a valid key for an active subscription.'
const token = 'Unauthorized. Access token is missing or invalid.'

test.each([
  [undefined, 'Bearer sandbox', missing],
  ['other', 'Bearer sandbox', invalid],
  ['sandbox', undefined, token],
  ['sandbox', 'Bearer other', token],
  ['sandbox', 'sandbox', token],
  ['sandbox', 'Basic sandbox', token],
])(
  'the sandbox rejects a call with the key %s and the authorization %s',
  async (key, authorization, message) => {
    const { client } = await cleanSandbox()
    const call = client.get('/Attendance/V3/AttendanceRecords')
    if (key !== undefined) call.set('Ocp-Apim-Subscription-Key', key)
    if (authorization !== undefined) call.set('Authorization', authorization)
    const reply = await call
    expect([reply.status, reply.body]).toEqual([401, { statusCode: 401, message }])
  },
)

test('the sandbox accepts the scheme of the token in upper and in lower case', async () => {
  const { json } = await cleanSandbox()
  const reply = await json('GET', '/nowhere', { headers: { Authorization: 'bearer sandbox' } })
  expect(reply).toMatchObject({ status: 404, body: { error: { code: 'NotFound' } } })
})

const all = ['Attendance', 'Learner.Indentifier', 'Learner.Groups', 'Learner.SEN']
const limited = {
  keys: ['partner'],
  tokens: [
    { token: 'most', domains: all },
    { token: 'none', domains: [] },
  ],
}
const limitedSandbox = oneSandbox(limited)
const as = (token: string) => ({
  headers: { 'Ocp-Apim-Subscription-Key': 'partner', Authorization: `Bearer ${token}` },
})

test.each([
  ['most', '/V3/LearnerIdentifiers', 200],
  ['none', '/V3/LearnerIdentifiers', 403],
  ['most', '/V3/LearnerMedicals', 403],
  ['most', '/Learner/V3/LearnerSENs', 200],
  ['most', '/Learner/V3/LearnerSENReviews', 403],
  ['most', '/Learner/V3/LearnerEHCPs', 403],
  ['most', '/V3/LearnerGroups?$expand=LearnerIdentifiers', 200],
  ['most', '/V3/LearnerGroups?$expand=LearnerSENReviews', 403],
  // A filter or an order that uses members reveals data of the members, so it needs the same permission as `$expand`.
  ['most', '/V3/LearnerGroups?$expand=*', 403],
  ['most', '/V3/LearnerGroups?$filter=LearnerMedicals/any(m:m/IsDisabled)', 403],
  ['most', '/V3/LearnerGroups/$count?$filter=LearnerMedicals/any(m:m/IsDisabled)', 403],
  ['most', '/V3/LearnerGroups?$filter=@a&@a=LearnerMedicals/any(m:m/IsDisabled)', 403],
  ['most', '/V3/LearnerGroups?$orderby=LearnerMedicals/$count($filter=IsDisabled)', 403],
  ['most', '/V3/LearnerGroups?$expand=LearnerIdentifiers($filter=$it/LearnerMedicals/any())', 403],
  ['most', "/V3/LearnerGroups?$filter=LearnerIdentifiers/any(l:l/OnRollState%20eq%20'LearnerMedicals')", 200],
  ['most', '/Attendance/V3/StatutoryAttendanceSessions', 200],
  ['none', '/Attendance/V3/StatutoryAttendanceSessions', 403],
  ['none', '/V2/Attendance/AttendanceRecords', 403],
  ['none', '/V3/$metadata', 200],
])('the sandbox, called with the token "%s" at %s, answers %i', async (token, path, status) => {
  const { request } = await limitedSandbox()
  const reply = await request('GET', path, as(token))
  expect(reply.status).toBe(status)
  if (status === 403)
    expect(JSON.parse(reply.text)).toEqual({
      statusCode: 403,
      message: 'Forbidden. The access token does not hold the permission that this resource needs.',
    })
})

test('the sandbox refuses calls above the rate limit only for the key that exceeds it', async () => {
  const { json, request } = await startSandbox({ ...limited, callsPerSecond: 3 })
  const statuses: number[] = []
  for (let call = 0; call < 5; call += 1) statuses.push((await request('GET', '/V3', as('none'))).status)
  expect(statuses).toEqual([200, 200, 200, 429, 429])
  const refused = await request('GET', '/V3', as('none'))
  expect(refused.headers['retry-after']).toBe('1')
  expect(JSON.parse(refused.text)).toEqual({
    statusCode: 429,
    message: 'Rate limit is exceeded. Try again in 1 seconds.',
  })
  expect((await json('GET', '/V3')).status).toBe(200)
})
