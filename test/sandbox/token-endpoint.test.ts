import { expect, test } from 'vitest'
import { anyText, jsonBody, oneSandbox, startSandbox } from './start-sandbox.ts'

const right = {
  grant_type: 'client_credentials',
  client_id: 'school-app',
  client_secret: 'secret',
  scope: 'partner',
  acr_values: 'orgselected:org-1',
}
const options = {
  clients: [{ id: 'school-app', secret: 'secret', organisation: 'org-1', domains: ['Learner.Transport'] }],
}

const cleanSandbox = oneSandbox(options)

test('the sandbox issues a token that carries the permissions of the client and expires after an hour', async () => {
  const { client, json } = await cleanSandbox()
  const reply = await client.post('/identity/connect/token').type('form').send(right)
  const granted = { access_token: anyText, expires_in: 3600, token_type: 'Bearer', scope: 'partner' }
  expect([reply.status, reply.body]).toEqual([200, granted])
  const { access_token: token } = reply.body as { access_token: string }
  const headers = { Authorization: `bearer ${token}` }
  expect((await json('GET', '/V3/LearnerTransports', { headers })).status).toBe(200)
  expect((await json('GET', '/V3/LearnerMedicals', { headers })).status).toBe(403)
  const later = (now: string) =>
    json('PUT', '/_sandbox/clock', { headers: jsonBody, body: JSON.stringify({ now }) })
  await later('2026-06-10T10:59:59Z')
  expect((await json('GET', '/V3/LearnerTransports', { headers })).status).toBe(200)
  await later('2026-06-10T11:00:00Z')
  expect((await json('GET', '/V3/LearnerTransports', { headers })).status).toBe(401)
})

test('the sandbox issues a token with all permissions to the built-in client', async () => {
  const { client, json } = await startSandbox()
  const own = { ...right, client_id: 'sandbox', client_secret: 'sandbox' }
  const reply = await client.post('/connect/token').type('form').send(own)
  const { access_token: token } = reply.body as { access_token: string }
  const headers = { Authorization: `Bearer ${token}` }
  expect((await json('GET', '/V3/LearnerMedicals', { headers })).status).toBe(200)
})

test.each([
  ['a wrong secret', { client_secret: 'x' }, 401, 'invalid_client'],
  ['an unknown client', { client_id: 'x' }, 401, 'invalid_client'],
  ['another grant', { grant_type: 'password' }, 400, 'unsupported_grant_type'],
  ['no scope', { scope: '' }, 400, 'invalid_scope'],
  ['no organisation', { acr_values: '' }, 400, 'invalid_request'],
  ['the organisation of another client', { acr_values: 'orgselected:org-2' }, 400, 'unauthorized_client'],
])('the sandbox rejects a token request with %s', async (_name, change, status, error) => {
  const { client } = await cleanSandbox()
  const reply = await client
    .post('/connect/token')
    .type('form')
    .send({ ...right, ...change })
  expect([reply.status, reply.body]).toEqual([status, { error }])
})

test('the sandbox rejects a token request whose body is not form-encoded', async () => {
  const { client } = await cleanSandbox()
  const reply = await client.post('/connect/token').send(right)
  expect([reply.status, reply.body]).toEqual([400, { error: 'invalid_request' }])
})
