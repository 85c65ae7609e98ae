import { expect, test } from 'vitest'
import { fixed, jsonBody, oneSandbox } from '../start-sandbox.ts'

const cleanSandbox = oneSandbox()

const path = `/V3/LearnerPersonals(${fixed.learner})`
const patch = (body: unknown, prefer?: string) => ({
  headers: prefer === undefined ? jsonBody : { ...jsonBody, Prefer: prefer },
  body: JSON.stringify(body),
})

test('the sandbox replaces only the properties in a PATCH, and restores all properties on reset', async () => {
  const { json, request } = await cleanSandbox()
  const before = (await json('GET', path)).body as Record<string, unknown>
  const change = {
    PreferredForename: 'Ari',
    QuickNote: null,
    BirthCertificateSeen: false,
    DateOfBirth: '2017-05-01T01:00:00+01:00',
    Gender: { ExternalID: fixed.unknown, Code: 'X' },
    ExternalID: fixed.zero,
    '@odata.type': '#Svc.LearnerPersonal',
  }
  const reply = await request('PATCH', path, patch(change))
  expect([reply.status, reply.text]).toEqual([204, ''])
  expect((await json('GET', path)).body).toEqual({
    ...before,
    PreferredForename: 'Ari',
    QuickNote: null,
    BirthCertificateSeen: false,
    DateOfBirth: '2017-05-01T00:00:00Z',
    Gender: { ExternalID: fixed.unknown, Code: 'X', Description: null },
  })
  await json('POST', '/_sandbox/reset')
  expect((await json('GET', path)).body).toEqual(before)
})

test('the sandbox returns the changed entity if the client prefers return=representation', async () => {
  const { json, url } = await cleanSandbox()
  const reply = await json('PATCH', path, patch({ PreferredSurname: "O'Neill" }, 'return=representation'))
  expect(reply).toMatchObject({
    status: 200,
    body: {
      '@odata.context': `${url}/V3/$metadata#LearnerPersonals/$entity`,
      ExternalID: fixed.learner,
      PreferredSurname: "O'Neill",
    },
  })
})

test.each([
  [{ Nothing: 1 }, ['Nothing']],
  [{ PreviousNames: [] }, ['PreviousNames']],
  [{ PreferredForename: 1, BirthCertificateSeen: 'no' }, ['PreferredForename', 'BirthCertificateSeen']],
  [{ DateOfBirth: '2017-05-01' }, ['DateOfBirth']],
  [{ Title: 'Mr' }, ['Title']],
  [{ Title: { Code: 'MR' } }, ['Title/ExternalID']],
  [[], undefined],
])('the sandbox rejects the PATCH %j and changes nothing', async (change, targets) => {
  const { json } = await cleanSandbox()
  const before = await json('GET', path)
  const reply = await json('PATCH', path, patch(change))
  expect(reply).toMatchObject({ status: 400, body: { error: { code: 'InvalidBody' } } })
  if (targets !== undefined)
    expect(reply.body).toMatchObject({ error: { details: targets.map((target) => ({ target })) } })
  expect(await json('GET', path)).toEqual(before)
})
