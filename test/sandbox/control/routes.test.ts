import { expect, test } from 'vitest'
import { anyText, arrayWith, fixed, jsonOf, nestedMark, recordsOf, oneSandbox } from '../start-sandbox.ts'

const cleanSandbox = oneSandbox()

const mark = (learner: string) =>
  jsonOf(nestedMark({ Attendee: { ExternalID: learner }, Qualifier: { MinutesLate: 4, Comment: 'c' } }))
const path = recordsOf.V3

test('the sandbox returns the same sample ids for the default seed on every machine and every day', async () => {
  const { json } = await cleanSandbox()
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

test('the sandbox lists all accepted writes in order at /_sandbox/effects, and none after a reset', async () => {
  const { json } = await cleanSandbox()
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

test.each([
  ['/healthz', { status: 'ok' }],
  ['/readyz', { status: 'ok' }],
  ['/_sandbox/effects', []],
])('the sandbox serves %s without credentials', async (route, expected) => {
  const { client } = await cleanSandbox()
  const reply = await client.get(route)
  expect([reply.status, reply.body]).toEqual([200, expected])
})

const foreign = (code: string): RegExp => new RegExp(`^403 .*"code":"${code}"`)
const callers: [who: string, headers: Record<string, string>, refused: RegExp | undefined][] = [
  ['a program', {}, undefined],
  ['a program that uses a local host name', { Host: 'localhost:4010' }, undefined],
  ['a program that uses another local host name', { Host: 'sandbox.localhost' }, undefined],
  ['a program that uses an IP address', { Host: '[::1]:4010' }, undefined],
  ['an address that a person typed', { 'Sec-Fetch-Site': 'none' }, undefined],
  ['a page of the sandbox', { Host: 'localhost:4010', Origin: 'http://localhost:4010', 'Sec-Fetch-Site': 'same-origin' }, undefined],
  ['a foreign host name (DNS rebinding)', { Host: 'evil.test:4010' }, foreign('ForeignHost')],
  ['a page of a foreign host name (DNS rebinding)', { Host: 'evil.test', Origin: 'http://evil.test', 'Sec-Fetch-Site': 'same-origin' }, foreign('ForeignHost')],
  ['a host name that begins like a local name', { Host: 'localhost.evil.test' }, foreign('ForeignHost')],
  ['an address of another machine', { Host: '192.0.2.1:4010' }, foreign('ForeignHost')],
  ['another site', { 'Sec-Fetch-Site': 'cross-site' }, foreign('ForeignPage')],
  ['another port of this machine', { 'Sec-Fetch-Site': 'same-site' }, foreign('ForeignPage')],
  ['an unknown site', { 'Sec-Fetch-Site': 'new-word' }, foreign('ForeignPage')],
  ['a page of an old browser', { Origin: 'https://evil.test' }, foreign('ForeignPage')],
  ['a local page of an old browser', { Host: 'localhost:4010', Origin: 'http://localhost:3000' }, foreign('ForeignPage')],
  ['a sandboxed frame', { Origin: 'null' }, foreign('ForeignPage')],
] // prettier-ignore
test.each(callers)(
  'the sandbox decides by the origin whether to accept a control call: %s',
  async (_who, headers, refused) => {
    const { client } = await cleanSandbox()
    for (const call of [
      client.get('/_sandbox/samples'),
      client.get('/_SANDBOX/effects'),
      client.post('/_sandbox/reset'),
      client.delete('/_sandbox/faults'),
    ]) {
      const { status, text } = await call.set(headers)
      if (refused === undefined) expect([200, 204]).toContain(status)
      else expect(`${status} ${text}`).toMatch(refused)
    }
  },
)
