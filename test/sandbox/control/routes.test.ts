import { expect, test } from 'vitest'
import { anyText, arrayWith, fixed, jsonBody, startSandbox } from '../start-sandbox.ts'

const mark = (learner: string) => ({
  headers: jsonBody,
  body: JSON.stringify({
    Attendee: { ExternalID: learner },
    Event: { ExternalID: fixed.morning },
    AttendanceCode: { ExternalID: fixed.present },
    Qualifier: { MinutesLate: 4, Comment: 'c' },
  }),
})
const path = '/Attendance/V3/AttendanceRecords'

test('samples are the same for the default seed on every machine and day', async () => {
  const { json } = await startSandbox()
  const { body } = await json('GET', '/_sandbox/samples', { headers: { Authorization: '' } })
  expect(body).toEqual({
    learners: arrayWith(fixed.learner, fixed.otherLearner),
    events: arrayWith(fixed.morning, fixed.afternoon),
    codes: arrayWith({ id: fixed.present, code: '/' }),
    from: '2026-03-02T00:00:00Z',
    to: '2026-03-16T00:00:00Z',
  })
  expect(body).toMatchObject({ learners: { length: 30 }, events: { length: 16 } })
})

test('effects list every accepted write in order, and a reset undoes them', async () => {
  const { json } = await startSandbox()
  const first = await json('POST', path, mark(fixed.learner))
  await json('POST', path, mark(fixed.unknown))
  await json('POST', path, mark(fixed.otherLearner))
  const { body } = await json('GET', '/_sandbox/effects')
  const effect = {
    face: 'V3',
    event: fixed.morning,
    code: fixed.present,
    present: true,
    absent: false,
    minutesLate: 4,
    comment: 'c',
  }
  const { ExternalID } = first.body as { ExternalID: string }
  expect(body).toEqual([
    { seq: 1, learner: fixed.learner, externalId: ExternalID, ...effect },
    { seq: 2, learner: fixed.otherLearner, externalId: anyText, ...effect },
  ])
  expect((await json('GET', '/_sandbox/effects?since=1')).body).toMatchObject([{ seq: 2 }])
  expect(await json('POST', '/_sandbox/reset')).toEqual({ status: 204, body: undefined })
  expect((await json('GET', '/_sandbox/effects')).body).toEqual([])
  await json('POST', path, mark(fixed.learner))
  expect((await json('GET', '/_sandbox/effects')).body).toMatchObject([{ seq: 1, externalId: ExternalID }])
})

test('control can be switched off', async () => {
  const { json } = await startSandbox({ control: false })
  expect((await json('GET', '/_sandbox/samples')).status).toBe(404)
})

test.each(['/healthz', '/readyz'])('%s needs no credentials', async (route) => {
  const { pool } = await startSandbox()
  const reply = await pool.request({ method: 'GET', path: route })
  expect([reply.statusCode, await reply.body.json()]).toEqual([200, { status: 'ok' }])
})

test('credentials of the data service are not asked for', async () => {
  const { pool } = await startSandbox()
  const reply = await pool.request({ method: 'GET', path: '/_sandbox/effects' })
  expect([reply.statusCode, await reply.body.json()]).toEqual([200, []])
})

test.each([
  ['GET', '/_sandbox/samples'],
  ['POST', '/_sandbox/reset'],
] as const)('a page of another site cannot %s %s through a browser', async (method, path) => {
  const { json } = await startSandbox()
  const asked = async (site: string): Promise<unknown[]> => {
    const { status, body } = await json(method, path, { headers: { 'Sec-Fetch-Site': site } })
    return [site, status, status === 403 ? body : undefined]
  }
  const ok = method === 'GET' ? 200 : 204
  expect(await asked('cross-site')).toEqual([
    'cross-site',
    403,
    { error: { code: 'ForeignPage', message: 'Control answers no page of another site.' } },
  ])
  for (const site of ['same-origin', 'same-site', 'none'])
    expect(await asked(site)).toEqual([site, ok, undefined])
})
