import { describe, expect, it } from 'vitest'

import {
  batchOf,
  batchPath,
  flatRecord,
  flatRecords,
  guid,
  postBatch,
  readBatchReply,
  statusesOf,
} from '../support/batch-request.ts'
import { exchange, RawClient } from '../support/raw-client.ts'
import { startUpstream } from '../support/scripted-upstream.ts'
import { onePartner, startAdapter, startWithV3 } from '../support/start-adapter.ts'

const key = 'Ocp-Apim-Subscription-Key: client-key\r\nAuthorization: bearer client-token\r\n'

describe('a post to V3 for a record of a batch', () => {
  it('carries only the credentials of the outer request, whatever the inner requests contain (batch-wire F24)', async () => {
    const { upstream, adapter } = await startWithV3()
    const inner = [
      'Authorization: bearer inner',
      'Ocp-Apim-Subscription-Key: inner',
      'Host: inner',
      'Cookie: inner=1',
      'Forwarded: for=inner',
      'X-Forwarded-For: inner',
      'X-Other: inner',
    ]
    const batch = batchOf([flatRecord(1)], { inner })
    const reply = await postBatch(adapter, batch, { cookie: 'outer=1', 'x-forwarded-for': 'outer' })
    expect(statusesOf(reply)).toEqual([201])
    const { 'content-length': length, ...headers } = upstream.seen[0]?.headers ?? {}
    expect(length).toBe(String(upstream.seen[0]?.body.length))
    expect(headers).toEqual({
      host: `127.0.0.1:${upstream.port}`,
      connection: 'keep-alive',
      'content-type': 'application/json',
      accept: 'application/json',
      prefer: 'return=representation',
      'odata-maxversion': '4.0',
      authorization: 'bearer client-token',
      'ocp-apim-subscription-key': 'client-key',
    })
  })

  it("has the partner's V3 key, and a path that begins with the path of baseUrl", async () => {
    const upstream = await startUpstream()
    const { Secret } = await import('../../src/config/index.ts')
    const adapter = await startAdapter(
      `${upstream.url}/sims/`,
      onePartner({ v3: { subscriptionKey: new Secret('v3-key') } }),
    )
    await postBatch(adapter, batchOf([flatRecord(1)]))
    expect(upstream.seen.map(({ url, headers }) => [url, headers['ocp-apim-subscription-key']])).toEqual([
      ['/sims/Attendance/V3/AttendanceRecords', 'v3-key'],
    ])
  })
})

describe('the outer request of a batch', () => {
  it('is accepted under any path prefix and in any letter case', async () => {
    const adapter = await startAdapter((await startUpstream()).url)
    const { headers, body } = batchOf([flatRecord(1)])
    const paths = ['/V2/Attendance/$batch', '/v2/attendance/%24BATCH', '/a/b%20c/V2/Attendance/$batch/', '/x/V2/Attendance/$batch?y=%zz'] // prettier-ignore
    for (const path of paths) {
      const parts = readBatchReply(await adapter.request('POST', path, { headers, body }))
      expect([path, parts.map(({ status }) => status)]).toEqual([path, [201]])
    }
  })

  it.each(['GET', 'PUT', 'DELETE', 'PATCH'] as const)(
    'gets 405 when the method is %s instead of POST',
    async (method) => {
      const adapter = await startAdapter('http://127.0.0.1:1')
      const reply = await adapter.request(method, batchPath)
      expect([reply.status, reply.headers['allow']]).toEqual([405, 'POST'])
      expect(JSON.parse(reply.text)).toMatchObject({ error: { code: 'ADP_METHOD_NOT_ALLOWED' } })
    },
  )

  it.each(['/$batch', '/V2/%24batch?x=1'])('is refused if the client posts it to %s, and the error names the path for batches', async (path) => {
    const adapter = await startAdapter('http://127.0.0.1:1')
    const reply = await adapter.request('POST', path, batchOf([flatRecord(1)]))
    expect([reply.status, reply.text]).toEqual([
      405,
      expect.stringContaining('…/V2/Attendance/$batch'),
    ])
  }) // prettier-ignore

  const denied: [name: string, headers: Record<string, string>, message: RegExp][] = [
    ['without a key', { Authorization: 'bearer t' }, /missing subscription key/],
    ['with an empty key', { 'Ocp-Apim-Subscription-Key': '', Authorization: 'bearer t' }, /missing subscription key/],
    ['without a token', { 'Ocp-Apim-Subscription-Key': 'acme-key' }, /missing access token/],
    ['with another authentication scheme', { 'Ocp-Apim-Subscription-Key': 'acme-key', Authorization: 'Basic eDp5' }, /missing access token/],
    ['with an empty token', { 'Ocp-Apim-Subscription-Key': 'acme-key', Authorization: 'bearer ' }, /missing access token/],
    ['with a key that no partner has', { 'Ocp-Apim-Subscription-Key': 'other', Authorization: 'bearer t' }, /invalid subscription key/],
  ] // prettier-ignore
  it.each(denied)(
    'gets 401 in the error format of the gateway, and no record is posted, when the request comes %s',
    async (_name, headers, message) => {
      const upstream = await startUpstream()
      const partner = {
        id: 'acme',
        match: { subscriptionKeySha256: '1f4fa7b5b9c3d5b7c4a2a7bd1f6b8a3f6a1e2d3c4b5a69788796a5b4c3d2e1f0' },
      }
      const adapter = await startAdapter(upstream.url, { partners: [partner] })
      const batch = batchOf([flatRecord(1)])
      const lines = Object.entries({
        Host: 'x',
        Connection: 'close',
        ...batch.headers,
        'Content-Length': batch.body.length,
        ...headers,
      })
      const reply = await exchange(
        adapter.port,
        `POST ${batchPath} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n${batch.body}`,
      )
      expect(reply).toMatch(/^HTTP\/1\.1 401 /)
      expect(reply).toContain('WWW-Authenticate: Bearer')
      const {
        statusCode,
        message: text,
        ...rest
      } = JSON.parse(reply.split('\r\n\r\n')[1] ?? '') as Record<string, unknown>
      expect([statusCode, rest]).toEqual([401, {}])
      expect(text).toMatch(message)
      expect(upstream.seen).toEqual([])
    },
  )

  it.each([
    ['two Host headers', 'Host: a\r\nHost: b\r\n'],
    ['a Host with a path', 'Host: a/b\r\n'],
    ['a Host with a quote', 'Host: a"b\r\n'],
    ['a Host with user information', 'Host: u@a\r\n'],
    ['an empty Host', 'Host: \r\n'],
  ])('is rejected when the request has %s (RFC 9112 3.2)', async (_name, host) => {
    const { upstream, adapter } = await startWithV3()
    for (const path of [batchPath, '/V2/Attendance/AttendanceRecords', '/V3/LearnerIdentifiers']) {
      const reply = await exchange(
        adapter.port,
        `POST ${path} HTTP/1.1\r\n${host}${key}Connection: close\r\nContent-Length: 0\r\n\r\n`,
      )
      expect(reply).toMatch(/^HTTP\/1\.1 400 /)
      expect(reply).toContain('"code":"ADP_HOST"')
    }
    expect(upstream.seen).toEqual([])
  })

  it('gets 413 before the client has sent the whole body, if the body is too large', async () => {
    const adapter = await startAdapter('http://127.0.0.1:1', { limits: { maxBodyBytes: 3_000 } })
    const client = await RawClient.open(adapter.port)
    const length = 40_000_000
    client.send(`POST ${batchPath} HTTP/1.1\r\nHost: x\r\n${key}Content-Length: ${length}\r\n\r\n`)
    client.send(Buffer.alloc(length))
    expect(await client.untilClosed()).toMatch(/^HTTP\/1\.1 413 [^]*"code":"ADP_TOO_LARGE"/)
  })

  it('gets 503 with Retry-After when the bodies of other requests in progress fill the memory budget', async () => {
    const upstream = await startUpstream(() => undefined)
    const { headers, body } = batchOf(flatRecords(4))
    const adapter = await startAdapter(upstream.url, { limits: { maxInFlightBytes: body.length * 16 } })
    const first = adapter.request('POST', batchPath, { headers, body }).catch(() => undefined)
    await upstream.arrived(4)
    const reply = await adapter.request('POST', batchPath, { headers, body })
    expect([reply.status, reply.headers['retry-after']]).toEqual([503, '5'])
    expect(JSON.parse(reply.text)).toMatchObject({ error: { code: 'ADP_OVERLOADED' } })
    await upstream.close()
    await first
    const third = await adapter.request('POST', batchPath, { headers, body })
    expect(third.status).toBe(200)
  })
})

describe('the reply to a batch', () => {
  it('has the layout flat if the partner has layout: flat, even for a client that names an OData version (batch-wire A6)', async () => {
    const adapter = await startAdapter((await startUpstream()).url, onePartner({ layout: 'flat' }))
    const reply = await postBatch(adapter, batchOf(flatRecords(2)), { 'OData-MaxVersion': '4.0' })
    expect(readBatchReply(reply).length).toBe(2)
  })

  const other = 'batch_ffffffff-0000-4000-8000-00000000000f'
  it.each([
    ['post', 2, { accepted: 1, refused: 1, notApplied: 0, unknown: 1 }],
    ['drop', 0, { accepted: 0, refused: 1, notApplied: 2, unknown: 0 }],
  ])(
    'is a single 200 without parts if the ids of header and body differ; with mismatch: %s, %i records are posted (service.md 4.2)',
    async (mismatch, count, tally) => {
      const upstream = await startUpstream((seen, response) => {
        if (seen.body.includes(guid(1))) response.destroy()
        else response.end(JSON.stringify({ ExternalID: guid(5) }))
      })
      const adapter = await startAdapter(upstream.url, onePartner({ quirks: { mismatch } }))
      const reply = await postBatch(adapter, batchOf([...flatRecords(2), '{}'], { boundary: other }))
      expect(reply.status).toBe(200)
      expect(reply.text).toMatch(
        /^--(batchresponse_[0-9a-f-]{36})\r\nContent-Type: multipart\/mixed; boundary=(changesetresponse_[0-9a-f-]{36})\r\n\r\n--\2--\r\n--\1--\r\n$/,
      )
      expect(upstream.seen.length).toBe(count)
      expect(adapter.events().at(-1)).toMatchObject({ records: 3, outcomesShown: false, ...tally })
    },
  )
})
