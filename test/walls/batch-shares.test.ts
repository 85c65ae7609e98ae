import { describe, expect, it, onTestFinished } from 'vitest'

import { batchOf, type BatchText, batchPath, flatRecords, readBatchReply } from '../support/batch-request.ts'
import { echoRecord, startUpstream } from '../support/scripted-upstream.ts'
import { type Reply, startAdapter } from '../support/start-adapter.ts'
import { client, crowd, metric, requestOf, timed } from './support/crowd.ts'

const a = client('key-a')
const b = client('key-b')
const small = batchOf(flatRecords(3))

describe('a client that sends half-finished batches', () => {
  const limits = { maxInFlightBytes: 1_000_000 }
  const half = (headers: Record<string, string>): string =>
    requestOf(
      `POST ${batchPath}`,
      { ...headers, ...small.headers },
      'Content-Length: 500000\r\n',
      'x'.repeat(249_000),
    )

  it.each([
    ['was accepted by V3', a],
    ['has a wrong token', client('key-a', 'bad')],
  ])('leaves room for a batch and a read of another client (the first client %s)', async (_name, headers) => {
    const upstream = await startUpstream((seen, response) => {
      if (seen.method === 'POST') return echoRecord(seen, response)
      response.writeHead(200, { 'Content-Type': 'application/json' }).end('{"value":[]}')
      return undefined
    })
    const adapter = await startAdapter(upstream.url, { limits })
    for (const own of [a, b])
      await adapter.request('POST', batchPath, { headers: { ...own, ...small.headers }, body: small.body })
    await crowd(adapter, 4, half(headers))
    await expect.poll(() => metric(adapter, 'in_flight_bytes')).toBeGreaterThan(200_000)
    const reply = await timed(
      adapter.request('POST', batchPath, { headers: { ...b, ...small.headers }, body: small.body }),
    )
    expect(readBatchReply(reply).map(({ status }) => status)).toEqual([201, 201, 201])
    const path = '/V2/Attendance/AttendanceRecords?$filter=AttendableEventStart%20ge%202026-03-02T00:00:00Z'
    const read = await adapter.request('GET', path, { headers: b })
    expect(read.status).toBe(200)
  })

  it('gets 408 and releases the memory of its batches if the rest arrives too slowly', async () => {
    const upstream = await startUpstream()
    const adapter = await startAdapter(
      upstream.url,
      {},
      { slowClients: { uploadMs: 400, minBytesPerSecond: 100 } },
    )
    const slow = await crowd(adapter, 4, half(a))
    const timer = setInterval(() => {
      for (const one of slow) one.send('x')
    }, 100)
    onTestFinished(() => clearInterval(timer))
    for (const one of slow)
      expect(await one.untilClosed()).toMatch(
        /^HTTP\/1\.1 408 [^]*Connection: close[^]*"code":"ADP_SLOW_CLIENT"/,
      )
    await expect.poll(() => metric(adapter, 'in_flight_bytes')).toBe(0)
    expect(await metric(adapter, 'slow_clients_total', { phase: 'upload' })).toBe(4)
    expect(upstream.seen).toEqual([])
    expect(adapter.events().filter(({ msg }) => msg === 'request refused')).toEqual(
      Array(4).fill(expect.objectContaining({ code: 'ADP_SLOW_CLIENT', status: 408 })),
    )
  })

  it('gets its reply if the rest arrives slowly but fast enough', async () => {
    const upstream = await startUpstream()
    const adapter = await startAdapter(
      upstream.url,
      {},
      { slowClients: { uploadMs: 300, minBytesPerSecond: 500 } },
    )
    const { headers, body } = batchOf(flatRecords(2))
    const [one] = await crowd(
      adapter,
      1,
      requestOf(`POST ${batchPath}`, { ...a, ...headers }, `Content-Length: ${body.length}\r\n`),
    )
    for (let at = 0; at < body.length; at += 200) {
      one?.send(body.slice(at, at + 200))
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
    expect(await one?.until('batchresponse_')).toMatch(/^HTTP\/1\.1 200 /)
  })
})

describe('a client that does not read its replies', () => {
  it('occupies at most its share of the memory until the adapter disconnects it', async () => {
    const row = {
      ExternalID: '529e8769-fdd0-43b6-9d09-08fe2784c9d3',
      Present: true,
      Absent: false,
      RecordedOn: '2026-03-02T09:01:00Z',
      ChangeProcessName: 'x'.repeat(20_000),
      AttendableEventStart: '2026-03-02T09:00:00Z',
      RecordedBy: { ExternalID: 'f5c9b3c0-f205-4bd5-a05d-48e0fada7dd1' },
      Attendee: { ExternalID: '41dba12f-bcce-470b-8ce4-b260ffb62649' },
      Event: { ExternalID: '29cd4133-b991-43c6-9913-1e96862672ec' },
      AttendanceCode: { ExternalID: 'ac00c159-62ce-44b8-ace6-c75caf7505e6' },
      Qualifier: { MinutesLate: null, Comment: null },
    }
    const page = JSON.stringify({ value: Array(100).fill(row) })
    const upstream = await startUpstream((_seen, response) => {
      response.writeHead(200, { 'Content-Type': 'application/json' }).end(page)
    })
    const adapter = await startAdapter(
      upstream.url,
      { limits: { maxInFlightBytes: 24_000_000 } },
      { slowClients: { replyMs: 1_000, minBytesPerSecond: 100_000_000 } },
    )
    const path = '/V2/Attendance/AttendanceRecords?$filter=AttendableEventStart%20ge%202026-03-02T00:00:00Z'
    for (const own of [a, b]) await adapter.request('GET', path, { headers: own })
    const slow = await crowd(adapter, 2, '')
    for (const one of slow) {
      one.socket.pause()
      one.send(requestOf(`GET ${path}`, a).repeat(6))
    }
    await expect.poll(() => metric(adapter, 'in_flight_bytes'), { timeout: 60_000 }).toBeGreaterThan(0)
    const read = await timed(adapter.request('GET', path, { headers: b }))
    expect(read.status).toBe(200)
    expect(await metric(adapter, 'in_flight_bytes')).toBeLessThan(22_000_000)
    await expect.poll(() => metric(adapter, 'in_flight_bytes'), { timeout: 60_000 }).toBe(0)
  })
})

describe('the reply to a batch', () => {
  const long = `/${'p'.repeat(1_950)}${batchPath.slice(batchPath.indexOf('/V2'))}`
  const nested = { partners: [{ id: 'acme', match: { any: true }, clients: 'open', layout: 'nested' }] }
  const many = batchOf(flatRecords(200))

  it('is counted in the bytes in flight before the records are posted', async () => {
    const { promise: released, resolve: release } = Promise.withResolvers<undefined>()
    const upstream = await startUpstream(async (seen, response) => {
      if (seen.index >= 3) await released
      void echoRecord(seen, response)
    })
    const limits = { maxInFlightBytes: 900_000 }
    const adapter = await startAdapter(upstream.url, { ...nested, limits })
    const post = ({ headers, body }: BatchText): Promise<Reply> =>
      adapter.request('POST', long, { headers: { ...a, ...headers }, body })
    await post(small)
    const first = post(many)
    await expect.poll(() => metric(adapter, 'in_flight_bytes')).toBeGreaterThan(200 * 2_000)
    // V3 gets the three records of the first batch, and as many records of the second batch as are posted at a time.
    const posted = 3 + 16
    await upstream.arrived(posted)
    const second = await post(many)
    expect([second.status, second.text]).toEqual([503, expect.stringContaining('ADP_OVERLOADED')])
    expect(upstream.seen).toHaveLength(posted)
    release(undefined)
    const { status, text } = await first
    expect([status, text.match(/^HTTP\/1\.1 201 /gm)?.length]).toEqual([200, 200])
    await expect.poll(() => metric(adapter, 'in_flight_bytes')).toBe(0)
  })
})

it('the adapter closes a connection with 408 if a request head never ends', async () => {
  const adapter = await startAdapter('http://127.0.0.1:1', {}, { slowClients: { headersMs: 300 } })
  const [silent, slow] = await Promise.all([
    crowd(adapter, 1, ''),
    crowd(adapter, 1, 'GET /V3/x HTTP/1.1\r\nHost: x\r\n'),
  ])
  expect(await slow[0]?.untilClosed()).toMatch(/^HTTP\/1\.1 408 /)
  await silent[0]?.untilClosed()
  expect(await metric(adapter, 'slow_clients_total', { phase: 'headers' })).toBeGreaterThan(0)
})
