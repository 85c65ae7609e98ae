import { gunzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import {
  jsonBody,
  jsonOf,
  nestedMark,
  ownMark,
  recordsOf,
  sandboxHeaders,
  oneSandbox,
  startSandbox,
  testNow,
} from '../start-sandbox.ts'

const cleanSandbox = oneSandbox()

const path = recordsOf.V3
const mark = jsonOf(nestedMark())

test('the sandbox returns a status fault for matching requests only, and as often as configured', async () => {
  const sandbox = await cleanSandbox()
  const fault = { kind: 'status', status: 503, method: 'post', path: 'attendancerecords', skip: 1, count: 2 }
  expect(await sandbox.put('faults', fault)).toMatchObject({
    status: 200,
    body: [{ remaining: 2, struck: 0 }],
  })
  const statuses: number[] = []
  for (let index = 0; index < 5; index += 1) statuses.push((await sandbox.json('POST', path, mark)).status)
  expect(statuses).toEqual([201, 503, 503, 201, 201])
  expect(await sandbox.effects()).toHaveLength(3)
  expect((await sandbox.json('GET', '/_sandbox/faults')).body).toMatchObject([{ remaining: 0, struck: 2 }])
  expect(await sandbox.json('DELETE', '/_sandbox/faults')).toEqual({ status: 204, body: undefined })
  expect((await sandbox.json('GET', '/_sandbox/faults')).body).toEqual([])
})

test('the sandbox returns a rate limit fault in the form that the gateway of the service uses', async () => {
  const sandbox = await cleanSandbox()
  await sandbox.put('faults', [{ kind: 'rateLimit', retryAfterSeconds: 3, face: 'V3' }])
  const reply = await sandbox.request('POST', path, mark)
  expect(reply).toMatchObject({ status: 429, headers: { 'retry-after': '3' } })
  expect(JSON.parse(reply.text)).toEqual({
    statusCode: 429,
    message: 'Rate limit is exceeded. Try again in 3 seconds.',
  })
})

test('the sandbox does not apply a fault that is set for the other interface', async () => {
  const sandbox = await cleanSandbox()
  await sandbox.put('faults', [{ kind: 'status', status: 500, face: 'V2' }])
  expect((await sandbox.json('POST', path, mark)).status).toBe(201)
})

test.each([
  [{ kind: 'reset' }, 0],
  [{ kind: 'reset', apply: true }, 1],
])(
  'the sandbox closes the connection without a reply under the fault %j, and applies %i writes',
  async (fault, effects) => {
    const sandbox = await cleanSandbox()
    await sandbox.put('faults', { ...fault, method: 'POST' })
    await expect(sandbox.request('POST', path, mark)).rejects.toThrow()
    await sandbox.json('DELETE', '/_sandbox/faults')
    expect(await sandbox.effects()).toHaveLength(effects)
  },
)

test.each([
  [{ kind: 'stall' }, 0],
  [{ kind: 'stall', apply: true }, 1],
])('the sandbox never replies under the fault %j, and applies %i writes', async (fault, effects) => {
  const sandbox = await cleanSandbox()
  await sandbox.put('faults', fault)
  const attempt = sandbox.pool.request({
    method: 'POST',
    path,
    headers: { ...sandboxHeaders, ...jsonBody },
    body: mark.body,
    headersTimeout: 300,
  })
  await expect(attempt).rejects.toMatchObject({ code: 'UND_ERR_HEADERS_TIMEOUT' })
  expect(await sandbox.effects()).toHaveLength(effects)
})

test('the sandbox announces more bytes than it sends under the fault truncate', async () => {
  const sandbox = await cleanSandbox()
  await sandbox.put('faults', { kind: 'truncate', bytes: 20, count: 1 })
  await expect(sandbox.request('POST', path, mark)).rejects.toThrow()
  expect(await sandbox.effects()).toHaveLength(1)
})

test('the sandbox returns a gzip header and a body that is not gzip under the fault brokenGzip', async () => {
  const sandbox = await cleanSandbox()
  await sandbox.put('faults', { kind: 'brokenGzip' })
  const reply = await sandbox.pool.request({
    method: 'POST',
    path,
    headers: { ...sandboxHeaders, ...jsonBody },
    body: mark.body,
  })
  const body = Buffer.from(await reply.body.arrayBuffer())
  expect(reply.headers['content-encoding']).toBe('gzip')
  expect([...body.subarray(0, 2)]).toEqual([0x1f, 0x8b])
  expect(() => gunzipSync(body)).toThrow()
})

test('the sandbox delays a complete reply under the faults latency and slowBody', async () => {
  const sandbox = await cleanSandbox()
  await sandbox.put('faults', [
    { kind: 'latency', ms: 60 },
    { kind: 'slowBody', bytesPerSecond: 8000 },
  ])
  const start = performance.now()
  const reply = await sandbox.json('POST', path, mark)
  expect(reply).toMatchObject({ status: 201, body: { fabricated: null } })
  expect(performance.now() - start).toBeGreaterThan(100)
})

test('the sandbox hides recent writes from reads under the fault staleRead', async () => {
  const sandbox = await cleanSandbox()
  const clock = (now: string) => sandbox.put('clock', { now })
  const recordedOn = async (): Promise<unknown> => {
    const { body } = await sandbox.json('GET', `${path}?$filter=${ownMark.V3}`)
    return (body as { value: { RecordedOn: string }[] }).value[0]?.RecordedOn
  }
  const seeded = await recordedOn()
  await sandbox.put('faults', { kind: 'staleRead', lagMs: 5000 })
  await sandbox.json('POST', path, mark)
  expect(await recordedOn()).toBe(seeded)
  await clock('2026-06-10T10:00:04.999Z')
  expect(await recordedOn()).toBe(seeded)
  await clock('2026-06-10T10:00:05Z')
  expect(await recordedOn()).toBe(testNow)
})

test('the sandbox applies a fault with a share to the requests that the seed chooses', async () => {
  const draw = async (): Promise<number[]> => {
    const sandbox = await startSandbox()
    await sandbox.put('faults', { kind: 'status', status: 500, probability: 0.5 })
    const statuses: number[] = []
    for (let index = 0; index < 20; index += 1) statuses.push((await sandbox.json('POST', path, mark)).status)
    return statuses
  }
  const statuses = await draw()
  expect(new Set(statuses)).toEqual(new Set([201, 500]))
  expect(await draw()).toEqual(statuses)
})

test.each([[{ kind: 'explode' }], [{ kind: 'latency' }], [{ kind: 'latency', ms: -1 }], ['text'], [[1]]])(
  'the sandbox rejects the invalid faults %j',
  async (faults) => {
    const sandbox = await cleanSandbox()
    expect(await sandbox.put('faults', faults)).toMatchObject({
      status: 400,
      body: { error: { code: 'ADP_USAGE' } },
    })
  },
)

test('the sandbox rejects a fault whose body is not JSON', async () => {
  const { json } = await cleanSandbox()
  const reply = await json('PUT', '/_sandbox/faults', { headers: jsonBody, body: '{' })
  expect(reply).toMatchObject({ status: 400, body: { error: { code: 'InvalidBody' } } })
})

test('the sandbox stops its clock at a set time, and lets the clock run again', async () => {
  const { json, put } = await cleanSandbox()
  expect(await put('clock', { now: '2026-03-04T09:00:00+01:00' })).toEqual({
    status: 200,
    body: { now: '2026-03-04T08:00:00Z' },
  })
  expect((await json('POST', path, mark)).body).toMatchObject({ RecordedOn: '2026-03-04T08:00:00Z' })
  expect((await json('DELETE', '/_sandbox/clock')).body).not.toEqual({ now: '2026-03-04T08:00:00Z' })
  expect(await put('clock', { now: 'noon' })).toMatchObject({ status: 400 })
})
