import { OData } from '@odata/client'
import { BatchChangeSet, ODataBatchRequestBuilder } from '@sap-cloud-sdk/odata-v4'
import { o } from 'odata'
import { describe, expect, it } from 'vitest'

import { AttendanceRecordApi, servicePath } from '../clients/support/attendance-api.ts'
import { postLegacy } from '../clients/support/legacy-client.ts'
import { fixed, sandboxHeaders } from '../sandbox/start-sandbox.ts'
import { loadFixtures } from './support/fixture.ts'
import { type LegacySides, startLegacySides } from './support/legacy-sides.ts'
import { recordRequests } from './support/record-requests.ts'

const fixtures = await loadFixtures()
/** Two marks that the sandbox accepts, and one whose event does not exist in the sandbox. */
const records = [
  [fixed.learner, fixed.morning],
  [fixed.otherLearner, fixed.afternoon],
  [fixed.learner, fixed.unknown],
].map(([Learner = '', AttendableEvent = '']) => ({
  Present: true,
  Absent: false,
  Learner,
  AttendableEvent,
  SchoolAttendanceCode: fixed.present,
  MinutesLate: null,
  Comment: 'é "quoted"',
}))
const headers = sandboxHeaders

async function expectSame(sides: LegacySides, request: Buffer): Promise<string> {
  const [direct, whole, alone] = await sides.replies(request)
  expect(direct).toMatch(/^HTTP\/1\.1 \d/)
  expect({ whole, alone }).toEqual({ whole: direct, alone: direct })
  return direct
}

describe('a request at stage legacy', () => {
  it('gets the reply of V2 byte for byte for every fixture', async () => {
    const sides = await startLegacySides()
    const statuses = new Set<string>()
    for (const { bytes } of fixtures) {
      const known = Buffer.from(
        bytes
          .toString('latin1')
          .replace('key-of-a-partner', 'sandbox')
          .replace(/bearer token-of-a-partner/i, 'bearer sandbox'),
        'latin1',
      )
      statuses.add((await expectSame(sides, known)).slice(9, 12))
      statuses.add((await expectSame(sides, bytes)).slice(9, 12))
    }
    expect([...statuses].sort()).toEqual(['200', '400', '401', '415'])
  })

  const drives: readonly (readonly [string, (root: string, url: string) => Promise<unknown>])[] = [
    ['a client that follows service.md 4.2', (root) => postLegacy(`${root}$batch`, headers, records)],
    ['a client that follows service.md 4.2, with ids that differ', (root) => postLegacy(`${root}$batch`, headers, records, { headerId: '00000000-0000-4000-8000-000000000000' })],
    ['o.js', (root) => postByO(root)],
    ['o.js as a query', (root) => o(root, { headers: new Headers(headers) }).get('AttendanceRecords').query({ $filter: 'AttendableEventStart ge 2026-03-02T00:00:00Z and AttendableEventStart lt 2026-03-09T00:00:00Z', $top: 3 })],
    ['@odata/client', (root) => postByODataClient(root)],
    ['@odata/client as a read of a page', (root) => OData.New4({ serviceEndpoint: root, commonHeaders: { ...headers } }).newRequest({ method: 'GET', collection: 'AttendanceRecords', params: OData.newOptions().filter('AttendableEventStart ge 2026-01-05T00:00:00Z and AttendableEventStart lt 2026-03-20T00:00:00Z') })],
    ['the SAP Cloud SDK', (_root, url) => postBySap(url)],
  ] // prettier-ignore
  it.each(drives)(
    'gets the reply of V2 byte for byte when the request comes from %s',
    async (_name, drive) => {
      const sides = await startLegacySides()
      const recording = await recordRequests(sides.spare)
      await drive(`${recording.url}${servicePath}/`, recording.url)
      expect(recording.requests.length).toBeGreaterThan(0)
      for (const request of recording.requests) {
        // The SDK first sends HEAD to get a CSRF token. The adapter rejects HEAD itself, so only the status line must equal V2's.
        if (request.toString('latin1', 0, 5) === 'HEAD ') {
          const starts = (await sides.replies(request)).map((reply) => reply.split('\r\n')[0])
          expect(new Set(starts)).toEqual(new Set(['HTTP/1.1 405 Method Not Allowed']))
          continue
        }
        expect(await expectSame(sides, request)).toMatch(/^HTTP\/1\.1 20[01] /)
      }
    },
  )

  it.each([
    ['a HEAD request', 'HEAD', '/x/V2/Attendance/$metadata'],
    ['a read of the metadata', 'GET', '/x/v2/attendance/%24metadata'],
    ['a read of the service document', 'GET', '/V2/Attendance/'],
    ['a read with an invalid key', 'GET', '/V2/Attendance/AttendanceRecords(1)'],
    ['a read with an invalid filter', 'GET', '/V2/Attendance/AttendanceRecords?$filter=%27'],
    ['a read of a path that V2 does not have', 'GET', '/V2/Nothing'],
    ['a read of registrations', 'GET', '/V2/LearnerRegistations'],
  ])('gets the reply of V2 byte for byte when the request is %s', async (_name, method, target) => {
    const sides = await startLegacySides()
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
    await expectSame(sides, Buffer.from(`${method} ${target} HTTP/1.1\r\nHost: x\r\n${lines.join('')}\r\n`))
  })
})

function postByO(root: string): Promise<unknown> {
  const newHeaders = (): Headers => new Headers({ ...headers, 'Content-Type': 'application/json' })
  const batch = {
    endpoint: '$batch',
    boundaryPrefix: 'batch_',
    changsetBoundaryPrefix: 'changeset_',
    useChangset: true,
    useRelativeURLs: false,
    headers: newHeaders(),
  }
  const client = o(root, { headers: newHeaders(), batch })
  for (const record of records) client.post('AttendanceRecords', record)
  return client.batch()
}

function postByODataClient(root: string): Promise<unknown> {
  const client = OData.New4({ serviceEndpoint: root, commonHeaders: { ...headers } })
  return client.execBatchRequests(
    records.map((entity) =>
      client.newBatchRequest<object>({ collection: 'AttendanceRecords', method: 'POST', entity }),
    ),
  )
}

function postBySap(url: string): Promise<unknown> {
  const api = new AttendanceRecordApi()
  const creates = records.map((record) => {
    const entity = api
      .entityBuilder()
      .present(record.Present)
      .absent(record.Absent)
      .learner(record.Learner)
      .attendableEvent(record.AttendableEvent)
      .schoolAttendanceCode(record.SchoolAttendanceCode)
      .minutesLate(record.MinutesLate)
      .comment(record.Comment)
      .build()
    return api.requestBuilder().create(entity)
  })
  const batch = new ODataBatchRequestBuilder(servicePath, [new BatchChangeSet(creates)])
  return batch.addCustomHeaders(headers).execute({ url })
}
