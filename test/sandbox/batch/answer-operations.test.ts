import { expect, test } from 'vitest'
import { decodeBatchReply } from '../../../src/v2/index.ts'
import { fixed, jsonBody, jsonOf, nestedMark, oneSandbox, startSandbox } from '../start-sandbox.ts'

const cleanSandbox = oneSandbox()

const path = '/Attendance/V3/$batch'
const mark = (learner: string) => nestedMark({ Attendee: { ExternalID: learner } })
const good = mark(fixed.learner)
const bad = mark(fixed.unknown)
type Started = Awaited<ReturnType<typeof cleanSandbox>>

const part = (id: string | undefined, method: string, url: string, body?: unknown): string =>
  [
    'Content-Type: application/http',
    ...(id === undefined ? [] : [`Content-ID: ${id}`]),
    '',
    `${method} ${url} HTTP/1.1`,
    'Content-Type: application/json',
    '',
    body === undefined ? '' : JSON.stringify(body),
    '',
  ].join('\r\n')
const changeset = (name: string, ...parts: string[]): string =>
  `Content-Type: multipart/mixed; boundary=${name}\r\n\r\n${parts.map((one) => `--${name}\r\n${one}`).join('')}--${name}--\r\n`
const multipart = (...parts: string[]) => ({
  headers: { 'Content-Type': 'multipart/mixed; boundary=b' },
  body: `${parts.map((one) => `--b\r\n${one}`).join('')}--b--\r\n`,
})
const send = async (sandbox: Started, body: ReturnType<typeof multipart>, prefer = '') => {
  const { status, headers, text } = await sandbox.request('POST', path, {
    ...body,
    headers: { ...body.headers, Prefer: prefer },
  })
  expect(status).toBe(200)
  const contentType = String(headers['content-type'])
  return { text, replies: decodeBatchReply(Buffer.from(text), contentType).parts }
}

test('the sandbox applies only the valid changesets of a batch with one changeset per pupil', async () => {
  const sandbox = await cleanSandbox()
  const { replies, text } = await send(
    sandbox,
    multipart(
      changeset('c1', part('1', 'POST', 'AttendanceRecords', good)),
      changeset('c2', part('2', 'POST', `${sandbox.url}/x/Attendance/V3/AttendanceRecords`, bad)),
      changeset('c3', part('3', 'POST', '/Attendance/V3/AttendanceRecords', mark(fixed.otherLearner))),
      part('4', 'GET', `AttendanceRecords?$filter=Attendee/ExternalID%20eq%20${fixed.learner}&$top=1`),
    ),
    'odata.continue-on-error',
  )
  expect(replies.map(({ contentId, status }) => [contentId, status])).toEqual([
    ['1', 201],
    ['2', 400],
    ['3', 201],
    ['4', 200],
  ])
  expect(text.match(/changesetresponse_[^\s]*\r\n\r\n/g)).toHaveLength(2)
  expect(JSON.parse(replies[1]?.body ?? '')).toMatchObject({ error: { code: 'ValidationFailed' } })
  expect(await sandbox.effects()).toMatchObject([{ seq: 1, face: 'V3' }, { seq: 2 }])
})

test('the sandbox rolls back a failed changeset, and returns one response for it', async () => {
  const sandbox = await cleanSandbox()
  const { replies } = await send(
    sandbox,
    multipart(
      changeset(
        'c1',
        part('1', 'POST', 'AttendanceRecords', good),
        part('2', 'POST', 'AttendanceRecords', bad),
        part('3', 'POST', 'AttendanceRecords', mark(fixed.otherLearner)),
      ),
    ),
  )
  expect(replies.map(({ contentId, status }) => [contentId, status])).toEqual([['2', 400]])
  expect(await sandbox.effects()).toEqual([])
  await send(sandbox, multipart(part('1', 'POST', 'AttendanceRecords', good)))
  expect(await sandbox.effects()).toMatchObject([{ seq: 1 }])
})

test('the sandbox stops a batch at the first failure unless the client prefers continue-on-error', async () => {
  const sandbox = await cleanSandbox()
  const operations = multipart(
    part(undefined, 'POST', 'AttendanceRecords', bad),
    part(undefined, 'POST', 'AttendanceRecords', good),
  )
  const { replies } = await send(sandbox, operations)
  expect(replies.map(({ status }) => status)).toEqual([400])
  expect(await sandbox.effects()).toEqual([])
})

test('the sandbox supports groups, dependencies and ids in a batch in JSON format', async () => {
  const sandbox = await cleanSandbox()
  const post = (id: string, body: unknown, more: object = {}) => ({
    ...{ id, method: 'post', url: 'AttendanceRecords', headers: jsonBody, body },
    ...more,
  })
  const requests = [
    post('a', good, { atomicityGroup: 'g' }),
    post('b', bad, { atomicityGroup: 'g' }),
    post('c', mark(fixed.otherLearner)),
    post('d', good, { dependsOn: ['g'] }),
    post('e', good, { dependsOn: ['c'] }),
    { id: 'f', method: 'GET', url: '/V3/LearnerIdentifiers/$count' },
    { id: 'g2', method: 'GET', url: '/V3/LearnerIdentifiers?$filter=x' },
  ]
  const reply = await sandbox.json('POST', path, {
    headers: { ...jsonBody, Prefer: 'continue-on-error' },
    body: JSON.stringify({ requests }),
  })
  expect(reply).toMatchObject({
    status: 200,
    body: {
      responses: [
        { id: 'a', atomicityGroup: 'g', status: 424 },
        { id: 'b', atomicityGroup: 'g', status: 400, body: { error: { code: 'ValidationFailed' } } },
        { id: 'c', status: 201, body: { Attendee: { ExternalID: fixed.otherLearner } } },
        { id: 'd', status: 424 },
        { id: 'e', status: 201 },
        { id: 'f', status: 200, body: '33' },
        { id: 'g2', status: 400, body: { error: { code: 'InvalidQuery' } } },
      ],
    },
  })
  expect(await sandbox.effects()).toHaveLength(2)
})

const json = (requests: unknown) => jsonOf({ requests })
const get = (id: string, more: object = {}) => ({ id, method: 'GET', url: 'AttendanceLookups', ...more })
test.each([
  ['malformed JSON', { headers: jsonBody, body: '{' }],
  ['no requests', { headers: jsonBody, body: '{}' }],
  ['a duplicate id', json([get('1'), get('1')])],
  ['a dependency on a later request', json([get('1', { dependsOn: ['2'] }), get('2')])],
  [
    'a group that is not consecutive',
    json([get('1', { atomicityGroup: 'g' }), get('2'), get('3', { atomicityGroup: 'g' })]),
  ],
  ['a part of another media type', multipart('Content-Type: text/plain\r\n\r\nGET x HTTP/1.1\r\n\r\n\r\n')],
  ['no request line', multipart('Content-Type: application/http\r\n\r\nhello\r\n\r\n')],
  [
    'a changeset part without Content-ID',
    multipart(changeset('c', part(undefined, 'POST', 'AttendanceRecords', good))),
  ],
  [
    'no closing delimiter',
    { ...multipart(part('1', 'GET', 'x')), body: multipart(part('1', 'GET', 'x')).body.slice(0, -8) },
  ],
])('the sandbox rejects a batch with %s and applies nothing', async (_name, body) => {
  const sandbox = await cleanSandbox()
  expect(await sandbox.json('POST', path, body)).toMatchObject({ status: 400, body: { error: {} } })
  expect(await sandbox.effects()).toEqual([])
})

test('the sandbox offers $batch only for POST, and only if its option is set', async () => {
  const off = await startSandbox({ batch: false })
  expect((await off.json('POST', path, json([get('1')]))).status).toBe(404)
  const on = await cleanSandbox()
  expect((await on.json('GET', path)).status).toBe(405)
  // $batch is not a resource inside a batch.
  expect(
    (await on.json('POST', path, json([{ ...get('1'), method: 'POST', url: '$batch' }]))).body,
  ).toMatchObject({
    responses: [{ status: 404 }],
  })
})

test('the sandbox applies a fault for a path to the matching requests of a batch', async () => {
  const sandbox = await cleanSandbox()
  const fault = { kind: 'rateLimit', path: 'AttendanceRecords', skip: 1, count: 1 }
  await sandbox.put('faults', fault)
  const parts = ['1', '2', '3'].map((id) => part(id, 'POST', 'AttendanceRecords', good))
  const { replies } = await send(sandbox, multipart(...parts), 'continue-on-error')
  expect(replies.map(({ contentId, status }) => [contentId, status])).toEqual([
    ['1', 201],
    ['2', 429],
    ['3', 201],
  ])
  expect(await sandbox.effects()).toHaveLength(2)
})

test('the sandbox refuses the reads of a batch, but not the writes, above the size limit of a reply', async () => {
  const sandbox = await cleanSandbox()
  const days = 'AttendableEventStart ge 2026-03-02T00:00:00Z and AttendableEventStart lt 2026-03-16T00:00:00Z'
  const large = `AttendanceRecords?$filter=${days.replaceAll(' ', '%20')}`
  const bytes = (await sandbox.request('GET', `/Attendance/V3/${large}`)).text.length
  const fitting = Math.floor(33_554_432 / bytes) + 1
  const reads = Array.from({ length: fitting + 2 }, (_, index) => part(String(index), 'GET', large))
  const { replies } = await send(
    sandbox,
    multipart(...reads, part('write', 'POST', 'AttendanceRecords', good)),
    'odata.continue-on-error',
  )
  const statuses = replies.map(({ status }) => status)
  expect(statuses).toEqual([...Array.from({ length: fitting }, () => 200), 413, 413, 201])
})
