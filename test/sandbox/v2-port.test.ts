import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { createSandbox } from '../../src/sandbox/index.ts'
import type { SandboxOptions } from '../../src/sandbox/index.ts'
import { batchPath } from '../support/batch-request.ts'
import {
  flatMark,
  jsonOf,
  nestedMark,
  ownMark,
  recordsOf,
  oneSandbox,
  startSandbox,
  testNow,
} from './start-sandbox.ts'

/** Returns the sandbox that the tests share, with a separate port for V2. */
const twoFaces = oneSandbox({ v2Port: 0 })
const startFaces = async (options?: SandboxOptions) => {
  const { v2, ...v3 } = await (options === undefined ? twoFaces() : startSandbox({ v2Port: 0, ...options }))
  return { v2, v3 }
}
const callerHeaders = (key: string, token: string): Record<string, string> => ({
  'Ocp-Apim-Subscription-Key': key,
  Authorization: `bearer ${token}`,
})

const flatRead = `${recordsOf.V2}?$filter=${ownMark.V2}`
const nestedRead = `${recordsOf.V3}?$filter=${ownMark.V3}`
const flat = (MinutesLate: number) => jsonOf(flatMark({ MinutesLate, Comment: 'c' }))
const nested = (MinutesLate: number) => jsonOf(nestedMark({ Qualifier: { MinutesLate, Comment: 'c' } }))

test('the sandbox has one store for its V2 and V3 ports, and lists the interface of each write', async () => {
  const { v2, v3 } = await startFaces()
  const first = await v2.json('POST', recordsOf.V2, flat(5))
  expect(first).toMatchObject({ status: 201, body: { MinutesLate: 5 } })
  expect((await v3.json('GET', nestedRead)).body).toMatchObject({
    value: [{ Qualifier: { MinutesLate: 5 } }],
  })
  const { ExternalID } = first.body as { ExternalID: string }
  expect(await v3.json('POST', recordsOf.V3, nested(7))).toMatchObject({ status: 201, body: { ExternalID } })
  // A write on V2 replaces a mark from V3 like any other mark, and the mark keeps its id.
  expect(await v2.json('POST', recordsOf.V2, flat(9))).toMatchObject({ status: 201, body: { ExternalID } })
  expect((await v2.json('GET', flatRead)).body).toMatchObject({
    value: [{ ExternalID, MinutesLate: 9 }],
  })
  const effects = await v2.effects()
  expect(effects).toMatchObject([
    { seq: 1, face: 'V2', minutesLate: 5 },
    { seq: 2, face: 'V3', minutesLate: 7 },
    { seq: 3, face: 'V2', minutesLate: 9 },
  ])
  expect(await v3.effects()).toEqual(effects)
})

const served: [path: string, atV2: number, atV3: number][] = [
  [flatRead, 200, 404],
  ['/V2/Attendance/$metadata', 200, 404],
  ['/V2/Attendance/', 200, 404],
  [`/AttendanceServiceFarm1/OData/V1/AttendanceRecords?$filter=${ownMark.V2}`, 200, 404],
  [batchPath, 405, 404],
  ['/V2/LearnerRegistations?$top=1', 200, 404],
  [nestedRead, 404, 200],
  ['/V3/LearnerIdentifiers?$top=1', 404, 200],
  ['/V3/LearnerRegistrations?$top=1', 404, 200],
  ['/Learner/odata/V3/LearnerIdentifiers?$top=1', 404, 200],
  ['/V1/Lookup/Learner/Ethnicity', 404, 200],
  ['/V3/$metadata', 404, 200],
  ['/healthz', 200, 200],
  ['/readyz', 200, 200],
  ['/_sandbox/samples', 200, 200],
]
test.each(served)(
  'the sandbox answers GET %s with %i on the V2 port and %i on the V3 port',
  async (path, atV2, atV3) => {
    const { v2, v3 } = await startFaces()
    expect([(await v2.request('GET', path)).status, (await v3.request('GET', path)).status]).toEqual([
      atV2,
      atV3,
    ])
  },
)

test('the sandbox offers no V2 resource inside a V3 batch, and no token endpoint on the V2 port', async () => {
  const { v2, v3 } = await startFaces()
  const requests = [{ id: '1', method: 'GET', url: flatRead }]
  const reply = await v3.json('POST', '/V3/$batch', jsonOf({ requests }))
  expect(reply.body).toMatchObject({ responses: [{ id: '1', status: 404 }] })
  expect((await v2.json('POST', '/connect/token', { body: 'grant_type=client_credentials' })).status).toBe(
    404,
  )
})

test('the sandbox serves V2 on the V3 port if v2Port is not set', async () => {
  const { url, v2Url, request } = await startSandbox()
  expect(v2Url).toBe(url)
  expect((await request('GET', flatRead)).status).toBe(200)
})

test('the sandbox accepts the keys and tokens of a port only on that port, and the built-in key and token on both ports', async () => {
  const { v2, v3 } = await startFaces({
    keys: ['new-key'],
    tokens: [{ token: 'new-token', domains: ['Attendance'] }],
    v2: { keys: ['old-key'], tokens: [{ token: 'old-token', domains: ['Attendance'] }] },
  })
  const statuses = async (key: string, token: string) => {
    const headers = callerHeaders(key, token)
    return [
      (await v2.json('GET', flatRead, { headers })).status,
      (await v3.json('GET', nestedRead, { headers })).status,
    ]
  }
  expect(await statuses('old-key', 'old-token')).toEqual([200, 401])
  expect(await statuses('old-key', 'sandbox')).toEqual([200, 401])
  expect(await statuses('new-key', 'new-token')).toEqual([401, 200])
  expect(await statuses('sandbox', 'old-token')).toEqual([200, 401])
  expect(await statuses('sandbox', 'sandbox')).toEqual([200, 200])
})

test('the sandbox accepts the keys and tokens of V3 on the V2 port by default', async () => {
  const { v2, v3 } = await startFaces({
    keys: ['one-key'],
    tokens: [{ token: 'one-token', domains: ['Attendance'] }],
    clients: [{ id: 'app', secret: 'secret', domains: ['Attendance'] }],
    v2: { callsPerSecond: 100 },
  })
  const granted = await v3.json('POST', '/connect/token', {
    headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
    body: 'grant_type=client_credentials&client_id=app&client_secret=secret&scope=s&acr_values=orgselected:1',
  })
  const { access_token: issued } = granted.body as { access_token: string }
  for (const token of ['one-token', issued]) {
    const headers = callerHeaders('one-key', token)
    expect((await v2.json('GET', flatRead, { headers })).status).toBe(200)
    expect((await v3.json('GET', nestedRead, { headers })).status).toBe(200)
  }
})

test('the sandbox limits the rate of each port separately', async () => {
  const { v2, v3 } = await startFaces({ v2: { callsPerSecond: 2 } })
  const path = flatRead
  const statuses = [await v2.json('GET', path), await v2.json('GET', path), await v2.json('GET', path)]
  expect(statuses.map(({ status }) => status)).toEqual([200, 200, 429])
  for (let call = 0; call < 4; call += 1) expect((await v3.json('GET', nestedRead)).status).toBe(200)
})

test('the sandbox applies a fault only to its own port, and removes the faults of both ports on reset', async () => {
  const { v2, v3 } = await startFaces()
  const read = async () => [
    (await v2.json('GET', flatRead)).status,
    (await v3.json('GET', nestedRead)).status,
  ]
  await v2.put('faults', { kind: 'status', status: 503 })
  expect(await read()).toEqual([503, 200])
  await v3.put('faults', { kind: 'status', status: 500 })
  expect(await read()).toEqual([503, 500])
  expect((await v2.json('GET', '/_sandbox/faults')).body).toMatchObject([
    { fault: { status: 503 }, struck: 2 },
  ])
  await v2.json('DELETE', '/_sandbox/faults')
  expect(await read()).toEqual([200, 500])
  await v2.put('faults', { kind: 'status', status: 503 })
  await v2.json('POST', '/_sandbox/reset')
  expect(await read()).toEqual([200, 200])
})

test('the sandbox rejects settings for V2 if the option v2Port is missing', () => {
  expect(() => createSandbox({ v2: { keys: ['old-key'] } })).toThrow(
    expect.objectContaining({
      code: 'ADP_USAGE',
      message: expect.stringContaining('v2: requires v2Port') as unknown,
    }),
  )
})

test('the sandbox names the flag --v2-port if the V2 port is in use, and closes the V3 port', async () => {
  const other = createServer()
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void other.close())
  const { port } = other.address() as AddressInfo
  const sandbox = createSandbox({ now: testNow, v2Port: port })
  await expect(sandbox.listen()).rejects.toMatchObject({
    code: 'ADP_CONFIGURATION',
    message: `Port ${port} is in use (EADDRINUSE). Nothing was started. Choose another port with --v2-port.`,
  })
  await sandbox.close()
})
