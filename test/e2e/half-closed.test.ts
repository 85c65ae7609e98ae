import { describe, expect, it } from 'vitest'

import { batchOf, batchText, flatRecord, flatRecords } from '../support/batch-request.ts'
import { RawClient, requestText } from '../support/raw-client.ts'
import { type Answer, echoRecord, startUpstream } from '../support/scripted-upstream.ts'
import { startAdapter, startWithV3 } from '../support/start-adapter.ts'

const lengthOf = (text: string): string => `Content-Length: ${Buffer.byteLength(text)}\r\n`
const record = JSON.stringify(flatRecord(1))
const range =
  'AttendableEventStart%20ge%202026-03-02T00:00:00Z%20and%20AttendableEventStart%20le%202026-03-03T00:00:00Z'

const requests = {
  'a batch': batchText(batchOf(flatRecords(2))),
  'a single record': requestText(
    'POST /V2/Attendance/AttendanceRecords',
    `Content-Type: application/json\r\n${lengthOf(record)}`,
    record,
  ),
  'a read': requestText(`GET /V2/Attendance/AttendanceRecords?$filter=${range}`),
  'a passed-through read': requestText('GET /V3/LearnerPersonals'),
}

const late: Answer = async (seen, response) => {
  await new Promise((resolve) => setTimeout(resolve, 100))
  if (seen.url.includes('$batch') || seen.method === 'GET') response.end('{"value":[]}')
  else void echoRecord(seen, response)
}

describe('a client that closes its sending side', () => {
  it.each(
    (['v3', 'legacy'] as const).flatMap((stage) =>
      Object.entries(requests).map(([name, request]) => [name, stage, request] as const),
    ),
  )('gets the reply to %s at stage %s if it has sent the whole request', async (_name, stage, request) => {
    const upstream = await startUpstream(late)
    const partners = [{ id: 'acme', match: { any: true }, stage }]
    const adapter = await startAdapter(upstream.url, { v2: { baseUrl: upstream.url }, partners })
    const client = await RawClient.open(adapter.port)
    client.socket.end(request)
    expect(await client.untilClosed()).toMatch(/^HTTP\/1\.1 20[01] /)
  })

  it('gets no reply if part of the request is missing', async () => {
    const { upstream, adapter } = await startWithV3(late)
    const client = await RawClient.open(adapter.port)
    client.socket.end(requests['a batch'].slice(0, -10))
    await client.untilClosed()
    expect(upstream.seen).toEqual([])
  })
})
