import { expect, test } from 'vitest'
import { startSandbox } from '../start-sandbox.ts'

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
])('key %s with authorization %s is refused', async (key, authorization, message) => {
  const { pool } = await startSandbox()
  const headers: Record<string, string> = {}
  if (key !== undefined) headers['Ocp-Apim-Subscription-Key'] = key
  if (authorization !== undefined) headers['Authorization'] = authorization
  const reply = await pool.request({ method: 'GET', path: '/Attendance/V3/AttendanceRecords', headers })
  expect([reply.statusCode, await reply.body.json()]).toEqual([401, { statusCode: 401, message }])
})

test('the scheme of the token is read in any case', async () => {
  const { json } = await startSandbox()
  const reply = await json('GET', '/nowhere', { headers: { Authorization: 'bearer sandbox' } })
  expect(reply).toMatchObject({ status: 404, body: { error: { code: 'NotFound' } } })
})
