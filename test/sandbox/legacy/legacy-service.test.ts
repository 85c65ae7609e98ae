import { expect, test } from 'vitest'
import { decodeBatchReply } from '../../../src/v2/index.ts'
import {
  anyText,
  fixed,
  flatMark,
  jsonBody,
  jsonOf,
  ownMark,
  recordsOf,
  oneSandbox,
  startSandbox,
} from '../start-sandbox.ts'

const cleanSandbox = oneSandbox()

const batchPath = '/sp-api-write-back-partner-live/V2/Attendance/$batch'
const id = '0a3c9b52-53b8-4b35-9a3e-1f7f0f7f6a01'
const record = {
  '@odata.type': '#AttendanceService.Models.OData.AttendanceRecord',
  ...flatMark({ Comment: 'late bus', MinutesLate: 5 }),
}
const part = (contentId: number, body: unknown, method = 'POST'): string =>
  [
    `--changeset_${id}`,
    'Content-Type: application/http',
    'Content-Transfer-Encoding: binary',
    `Content-ID: ${contentId}`,
    '',
    `${method} /p/AttendanceServiceFarm1/OData/V1/AttendanceRecords HTTP/1.1`,
    'Content-Type: application/json;odata.metadata=minimal',
    '',
    typeof body === 'string' ? body : JSON.stringify(body),
    '',
  ].join('\r\n')
const batch = (parts: readonly string[], headerId = id) => ({
  headers: { 'Content-Type': `multipart/mixed; boundary=batch_${headerId}` },
  body: `--batch_${id}\r\nContent-Type: multipart/mixed; boundary=changeset_${id}\r\n\r\n${parts.join('')}--changeset_${id}--\r\n--batch_${id}--\r\n`,
})
type Started = Awaited<ReturnType<typeof cleanSandbox>>
const send = async ({ request }: Started, body: ReturnType<typeof batch>) => {
  const { status, headers, text } = await request('POST', batchPath, body)
  return { status, contentType: String(headers['content-type']), text }
}

test('the sandbox answers each record of a V2 batch separately and in order, and applies the valid records', async () => {
  const sandbox = await cleanSandbox()
  const unknown = { ...record, AttendableEvent: fixed.unknown, SchoolAttendanceCode: fixed.unknown }
  const { status, contentType, text } = await send(
    sandbox,
    batch([
      part(1, record),
      part(2, unknown),
      part(3, '{'),
      part(4, { ...record, Learner: 1 }),
      part(5, record, 'PUT'),
      part(6, { ...record, Present: true, Absent: true }),
      part(7, { ...record, Learner: fixed.otherLearner.toUpperCase(), Comment: null, MinutesLate: null }),
    ]),
  )
  expect([status, contentType]).toEqual([
    200,
    expect.stringMatching(/^multipart\/mixed; boundary=batchresponse_/),
  ])
  const replies = decodeBatchReply(Buffer.from(text), contentType).parts.map((reply) => ({
    contentId: reply.contentId,
    status: reply.status,
    body: JSON.parse(reply.body) as unknown,
  }))
  const flat = {
    '@odata.context': `${sandbox.url}/sp-api-write-back-partner-live/V2/Attendance/$metadata#AttendanceRecords/$entity`,
    ExternalID: anyText,
    Present: true,
    Absent: false,
    RecordedOn: '2026-06-10T10:00:00Z',
    ChangeProcessName: null,
    AttendableEventStart: '2026-03-02T09:00:00Z',
    RecordedBy: anyText,
    Learner: fixed.learner,
    AttendableEvent: fixed.morning,
    SchoolAttendanceCode: fixed.present,
    MinutesLate: 5,
    Comment: 'late bus',
    AttendanceHistorys: [],
  }
  const error = (ErrorCode: string, Message: unknown = anyText) => ({
    Message,
    ErrorCode,
    ResourceIdentifier: '',
    SequenceID: anyText,
  })
  expect(replies).toEqual([
    { contentId: '1', status: 201, body: flat },
    {
      contentId: '2',
      status: 400,
      body: [
        error('ATT_VAL_2', 'The AttendableEvent of the record does not exist.'),
        error('ATT_VAL_3', 'The SchoolAttendanceCode of the record does not exist.'),
      ],
    },
    { contentId: '3', status: 400, body: [error('INVALID_JSON')] },
    { contentId: '4', status: 400, body: [error('INVALID_FIELD')] },
    { contentId: '5', status: 405, body: [error('METHOD_NOT_ALLOWED')] },
    { contentId: '6', status: 400, body: [error('INVALID_FIELD')] },
    {
      contentId: '7',
      status: 201,
      body: { ...flat, Learner: fixed.otherLearner, Comment: null, MinutesLate: null },
    },
  ])
  const sequence = (replies[1]?.body as { SequenceID: string }[]).map(({ SequenceID }) => SequenceID)
  expect(new Set(sequence).size).toBe(1)
  expect(await sandbox.effects()).toMatchObject([
    { seq: 1, face: 'V2', learner: fixed.learner, minutesLate: 5, comment: 'late bus' },
    { seq: 2, face: 'V2', learner: fixed.otherLearner },
  ])
})

test.each([
  ['of another media type', { headers: jsonBody, body: '{}' }, 415],
  [
    'whose body is truncated',
    { ...batch([part(1, record)]), body: batch([part(1, record)]).body.slice(0, -30) },
    400,
  ],
])('the sandbox rejects a V2 batch %s and applies nothing', async (_name, body, status) => {
  const { json, effects } = await cleanSandbox()
  expect(await json('POST', batchPath, body)).toMatchObject({ status, body: { error: {} } })
  expect(await effects()).toEqual([])
})

test.each(['/V2/Attendance/AttendanceRecords', '/AttendanceServiceFarm1/OData/V1/AttendanceRecords'])(
  'the sandbox accepts a single V2 record at %s',
  async (path) => {
    const { json, request } = await cleanSandbox()
    const body = JSON.stringify(record)
    expect(await json('POST', path, { headers: jsonBody, body })).toMatchObject({
      status: 201,
      body: { Learner: fixed.learner, MinutesLate: 5 },
    })
    const minimal = await request('POST', path, { headers: { ...jsonBody, Prefer: 'return=minimal' }, body })
    expect([minimal.status, minimal.text]).toEqual([204, ''])
    const wrong = JSON.stringify({ ...record, AttendableEvent: fixed.unknown })
    expect(await json('POST', path, { headers: jsonBody, body: wrong })).toMatchObject({
      status: 400,
      body: [{ ErrorCode: 'ATT_VAL_2' }],
    })
  },
)

test('the sandbox reports that a V2 record conflicts with an existing mark', async () => {
  const { json } = await startSandbox({ onExisting: 'conflict' })
  const reply = await json('POST', recordsOf.V2, jsonOf(record))
  expect(reply).toMatchObject({ status: 409, body: [{ ErrorCode: 'CONFLICT' }] })
})

test('the sandbox returns only recorded marks on V2, in flat form and in pages', async () => {
  const sandbox = await startSandbox({ pageSize: 10 })
  const weeks =
    'AttendableEventStart ge 2026-03-02T00:00:00Z and AttendableEventStart lt 2026-03-16T00:00:00Z'
  const query = new URLSearchParams({ $filter: `Learner eq ${fixed.learner} and ${weeks}` }).toString()
  const page = async (path: string) => {
    const { status, body } = await sandbox.json('GET', path)
    expect(status).toBe(200)
    return body as { value: Record<string, unknown>[]; '@odata.nextLink'?: string }
  }
  const first = await page(`/V2/Attendance/AttendanceRecords?${query}`)
  expect(first.value).toHaveLength(10)
  expect(Object.keys(first.value[0] ?? {})).toEqual([
    ...[
      'ExternalID',
      'Present',
      'Absent',
      'RecordedOn',
      'ChangeProcessName',
      'AttendableEventStart',
      'RecordedBy',
    ],
    ...['Learner', 'AttendableEvent', 'SchoolAttendanceCode', 'MinutesLate', 'Comment', 'AttendanceHistorys'],
  ])
  const rest = await page(String(first['@odata.nextLink']).slice(sandbox.url.length))
  // Two weeks have 28 sessions, of which 14 are marked.
  expect(rest.value).toHaveLength(4)
  expect(rest['@odata.nextLink']).toBeUndefined()
  const key = String(first.value[0]?.['ExternalID'])
  expect((await sandbox.json('GET', `/V2/Attendance/AttendanceRecords(${key})`)).body).toMatchObject(
    first.value[0] ?? {},
  )
})

test.each([
  ['GET', 'AttendanceRecords', 400],
  ['GET', `AttendanceRecords?$filter=Attendee/ExternalID%20eq%20${fixed.learner}`, 400],
  ['GET', `AttendanceRecords(${fixed.unknown})`, 404],
  ['GET', 'Nothing', 404],
  ['GET', '$batch', 405],
  ['PATCH', 'AttendanceRecords', 405],
  ['DELETE', `AttendanceRecords(${fixed.unknown})`, 405],
] as const)('the sandbox answers %s %s with %i', async (method, path, status) => {
  const { json } = await cleanSandbox()
  expect(await json(method, `/V2/Attendance/${path}`)).toMatchObject({ status, body: { error: {} } })
})

test('the sandbox ignores members of a V2 record that a client cannot write', async () => {
  const { json } = await cleanSandbox()
  const more = { Extra: { nested: [1] }, RecordedOn: '2026-03-02T09:05:00Z', ChangeProcessName: 'Acme' }
  expect(await json('POST', recordsOf.V2, jsonOf({ ...record, ...more }))).toMatchObject({
    status: 201,
    body: { ChangeProcessName: null, RecordedOn: '2026-06-10T10:00:00Z' },
  })
})

test('the sandbox returns the same AttendanceHistorys on V2 as on V3, in pages and for single records', async () => {
  const { json, put } = await cleanSandbox()
  const own = ownMark.V2
  const read = async (path: string) => (await json('GET', `/V2/Attendance/${path}`)).body
  const post = (minutes: number) => json('POST', recordsOf.V2, jsonOf({ ...record, MinutesLate: minutes }))
  expect(await read(`AttendanceRecords?$filter=${own}`)).toMatchObject({
    value: [{ AttendanceHistorys: [] }],
  })
  await post(5)
  await post(7)
  const history = (await json('GET', '/Attendance/V3/StatutoryAttendanceRecordHistorys')).body as {
    value: { ExternalID: string; AttendanceRecord: string; Qualifier: { MinutesLate: number | null } }[]
  }
  const states = history.value.map(({ ExternalID, Qualifier: { MinutesLate } }) => ({
    ExternalID,
    MinutesLate,
    Learner: fixed.learner,
    AttendableEvent: fixed.morning,
  }))
  expect(states.map(({ MinutesLate }) => MinutesLate)).toEqual([null, 5, 5, 7])
  const page = await read(`AttendanceRecords?$filter=${own}`)
  expect(page).toMatchObject({ value: [{ MinutesLate: 7, AttendanceHistorys: states }] })
  const id = String(history.value[0]?.AttendanceRecord)
  expect(await read(`AttendanceRecords(${id})`)).toMatchObject({ MinutesLate: 7, AttendanceHistorys: states })
  const late = encodeURIComponent('AttendanceHistorys/any(h:h/MinutesLate eq 5)')
  expect(await read(`AttendanceRecords?$filter=${own}%20and%20${late}&$select=Learner`)).toMatchObject({
    value: [{ Learner: fixed.learner }],
  })
  // The fault staleRead hides the latest write and its history rows from this read.
  await put('faults', { kind: 'staleRead' })
  await post(9)
  expect(await read(`AttendanceRecords?$filter=${own}`)).toEqual(page)
})
