import { expect, test } from 'vitest'
import {
  anyText,
  fixed,
  jsonBody,
  jsonOf as post,
  ownMark,
  recordsOf,
  oneSandbox,
  startSandbox,
  testNow,
} from '../start-sandbox.ts'

const cleanSandbox = oneSandbox()

const path = recordsOf.V3
const minimal = {
  Attendee: { ExternalID: fixed.learner, Type: 'Learner.Identifier' },
  Event: { ExternalID: fixed.morning, Type: 'Attendance.StatutoryAttendanceSession' },
  AttendanceCode: { ExternalID: fixed.present, Type: 'Attendance.Lookup.AttendanceCode' },
  Qualifier: { MinutesLate: null, Comment: null },
}
const full = {
  ExternalID: fixed.zero,
  Present: true,
  Absent: false,
  RecordedOn: '2026-03-02T10:05:00+01:00',
  ChangeProcessName: 'Acme Register',
  AttendableEventStart: '2026-03-02T09:00:00Z',
  RecordedBy: { ExternalID: fixed.unknown, Type: 'AuthorisedUser' },
  Attendee: { ExternalID: fixed.learner.toUpperCase(), Type: 'Learner.Identifier' },
  Event: { ExternalID: fixed.morning, Type: 'Attendance.AttendanceSession' },
  AttendanceCode: { ExternalID: fixed.present, Type: 'Attendance.Lookup' },
  Qualifier: { MinutesLate: 3, Comment: 'bus \\ “late”\n' },
}

test('the sandbox creates a full record and returns the record with a new id', async () => {
  const { url, json } = await cleanSandbox()
  const reply = await json('POST', `/sp-api${path}`, post(full))
  expect(reply).toEqual({
    status: 201,
    body: {
      '@odata.context': `${url}/sp-api/Attendance/V3/$metadata#AttendanceRecords/$entity`,
      ...full,
      ExternalID: anyText,
      RecordedOn: '2026-03-02T09:05:00Z',
      Attendee: { ExternalID: fixed.learner, Type: 'Learner.Identifier' },
      fabricated: null,
    },
  })
  expect(reply.body).not.toMatchObject({ ExternalID: fixed.zero })
})

test('the sandbox accepts a minimal record in single quotes, and derives its booleans from its code', async () => {
  const { json } = await cleanSandbox()
  const body = JSON.stringify(minimal).replaceAll('"', "'")
  const reply = await json('POST', '/x/aTTendance/v3/AttendanceRecords', { headers: jsonBody, body })
  expect(reply).toMatchObject({
    status: 201,
    body: {
      Present: true,
      Absent: false,
      RecordedOn: testNow,
      ...minimal,
      RecordedBy: { Type: 'AuthorisedUser' },
    },
  })
})

test('the sandbox reports all unknown ids of a record in one reply', async () => {
  const { json } = await cleanSandbox()
  const wrong = { ExternalID: fixed.unknown }
  const reply = await json(
    'POST',
    path,
    post({ ...minimal, Attendee: wrong, Event: wrong, AttendanceCode: wrong }),
  )
  const detail = (code: string, field: string) => ({
    code,
    target: `${field}/ExternalID`,
    message: `The ${field} with this ExternalID does not exist.`,
  })
  expect(reply).toEqual({
    status: 400,
    body: {
      error: {
        code: 'ValidationFailed',
        message: anyText,
        details: [
          detail('ATT_VAL_1', 'Attendee'),
          detail('ATT_VAL_2', 'Event'),
          detail('ATT_VAL_3', 'AttendanceCode'),
        ],
      },
    },
  })
})

test.each([
  ['an array around it', [minimal], ['']],
  ['no Event', { ...minimal, Event: undefined }, ['Event']],
  ['a null Attendee', { ...minimal, Attendee: null }, ['Attendee']],
  [
    'a reference without id',
    { ...minimal, Event: { Type: 'Attendance.AttendanceSession' } },
    ['Event/ExternalID'],
  ],
  ['an id that is not a guid', { ...minimal, Event: { ExternalID: 'x' } }, ['Event/ExternalID']],
  ['a wrong type', { ...minimal, Event: { ...minimal.Event, Type: 'Learner.Identifier' } }, ['Event/Type']],
  ['an unknown property', { ...minimal, Learner: fixed.learner }, ['Learner']],
  ['text in place of a number', { ...minimal, Qualifier: { MinutesLate: '3' } }, ['Qualifier/MinutesLate']],
  [
    'a fractional number of minutes',
    { ...minimal, Qualifier: { MinutesLate: 1.5 } },
    ['Qualifier/MinutesLate'],
  ],
  [
    'a number of more than 32 bits',
    { ...minimal, Qualifier: { MinutesLate: 2 ** 31 } },
    ['Qualifier/MinutesLate'],
  ],
  ['a date without a time', { ...minimal, RecordedOn: '2026-03-02' }, ['RecordedOn']],
  ['a time without offset', { ...minimal, RecordedOn: '2026-03-02T09:00:00' }, ['RecordedOn']],
  ['both Present and Absent', { ...minimal, Present: true, Absent: true }, ['Present']],
  ['two errors', { ...minimal, Present: 'yes', Absent: 1 }, ['Present', 'Absent']],
])('the sandbox rejects a record with %s', async (_name, body, targets) => {
  const { json } = await cleanSandbox()
  const reply = await json('POST', path, post(body))
  expect(reply).toMatchObject({
    status: 400,
    body: {
      error: { code: 'InvalidBody', details: targets.map((target) => ({ code: 'InvalidField', target })) },
    },
  })
  expect((await json('GET', '/_sandbox/effects')).body).toEqual([])
})

test.each([
  ['text/plain', '{}', 415, 'UnsupportedMediaType'],
  ['application/json', '{', 400, 'InvalidBody'],
  ['application/json;odata.metadata=minimal', '', 400, 'InvalidBody'],
])('the sandbox rejects a body of type %s with text %j by status %i', async (type, body, status, code) => {
  const { json } = await cleanSandbox()
  const reply = await json('POST', path, { headers: { 'Content-Type': type }, body })
  expect(reply).toMatchObject({ status, body: { error: { code } } })
})

test('the sandbox returns no body if the client prefers return=minimal', async () => {
  const { request, url } = await cleanSandbox()
  const options = post(minimal)
  const reply = await request('POST', path, {
    ...options,
    headers: { ...options.headers, Prefer: 'return=minimal' },
  })
  expect(reply).toMatchObject({ status: 204, text: '' })
  expect(reply.headers['location']).toContain(`${url}${path}(`)
})

test.each([
  ['replace', 201, 201, true],
  ['duplicate', 201, 201, false],
  ['conflict', 409, 409, false],
] as const)(
  'the sandbox applies onExisting=%s when a POST arrives for a session that already has a mark',
  async (onExisting, first, second, sameId) => {
    // The session is in the fixed weeks and already has a mark, so `onExisting` applies even to the first POST.
    const { json } = await startSandbox({ onExisting })
    const one = await json('POST', path, post(minimal))
    const two = await json('POST', path, post(minimal))
    expect([one.status, two.status]).toEqual([first, second])
    if (first === 201) expect(JSON.stringify(one.body) === JSON.stringify(two.body)).toBe(sameId)
  },
)

test('the sandbox uses the id that a client sends with a record, and refuses the same id for another session', async () => {
  const { json } = await startSandbox({ onExisting: 'duplicate' })
  const named = { ...full, ExternalID: fixed.unknown }
  expect(await json('POST', path, post(named))).toMatchObject({
    status: 201,
    body: { ExternalID: fixed.unknown },
  })
  const elsewhere = { ...named, Event: { ExternalID: fixed.afternoon } }
  expect(await json('POST', path, post(elsewhere))).toMatchObject({ status: 409 })
  // A POST with the id of a mark replaces this mark, even if the session has duplicates.
  await json('POST', path, post(full))
  await json('POST', path, post({ ...named, Qualifier: { Comment: 'new' } }))
  const reply = await json('GET', `${path}?$filter=${ownMark.V3}`)
  expect(reply.body).toMatchObject({
    value: [
      { Qualifier: { Comment: null } },
      { ExternalID: fixed.unknown, Qualifier: { Comment: 'new' } },
      { Qualifier: full.Qualifier },
    ],
  })
})

test('the sandbox stores and returns a text with a lone surrogate unchanged', async () => {
  const { request } = await cleanSandbox()
  const comment = 'a\ud83d\udE00b\ud83d'
  const mark = post({ ...full, ChangeProcessName: '\udc00', Qualifier: { Comment: comment } })
  expect(mark.body).toContain('b\\ud83d"')
  const reply = await request('POST', path, mark)
  expect(reply.text).toContain('b\\ud83d"')
  const { ExternalID } = JSON.parse(reply.text) as { ExternalID: string }
  for (const at of [`${path}(${ExternalID})`, '/_sandbox/effects']) {
    const { text } = await request('GET', at)
    expect(text).toContain('b\\ud83d"')
    expect(text).not.toContain('\ufffd')
  }
})

test('the sandbox ignores an id that the client sends if the session already has a mark', async () => {
  const { json } = await cleanSandbox()
  const named = { ...full, ExternalID: fixed.unknown }
  const before = (await json('GET', `${path}?$filter=${ownMark.V3}`)).body as {
    value: { ExternalID: string }[]
  }
  const reply = await json('POST', path, post(named))
  expect(reply).toMatchObject({ status: 201, body: { ExternalID: before.value[0]?.ExternalID } })
  expect((await json('GET', `${path}(${fixed.unknown})`)).status).toBe(404)
})
