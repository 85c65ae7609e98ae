import { describe, expect, it } from 'vitest'

import { batchOf, batchPath, flatRecord, flatRecords, readBatchReply } from '../support/batch-request.ts'
import { type Answer, echoRecord, startUpstream } from '../support/scripted-upstream.ts'
import { onePartner, startAdapter } from '../support/start-adapter.ts'
import { client, crowd, metric, requestOf, timed } from './support/crowd.ts'

const a = client('key-a')
const b = client('key-b')
const small = batchOf(flatRecords(3))
const post = (
  headers: Record<string, string>,
  batch = small,
): { headers: Record<string, string>; body: string } => ({
  headers: { ...headers, ...batch.headers },
  body: batch.body,
})

describe('a client that posts many records', () => {
  it('leaves a connection for another client even while V3 answers none of its records', async () => {
    const upstream = await startUpstream((seen, response) => {
      if (!seen.body.includes('stuck')) return echoRecord(seen, response)
      return undefined
    })
    const adapter = await startAdapter(upstream.url, onePartner({ v3: { concurrency: 100 } }))
    for (const own of [a, b]) await adapter.request('POST', batchPath, post(own))
    const many = batchOf(
      Array.from({ length: 100 }, (_, index) => flatRecord(1_000 + index, { Comment: 'stuck' })),
    )
    const { headers, body } = post(a, many)
    await crowd(
      adapter,
      1,
      requestOf(`POST ${batchPath}`, headers, `Content-Length: ${body.length}\r\n`, body),
    )
    // A single client gets 28 of the 32 connections.
    await upstream.arrived(6 + 28)
    const reply = await timed(adapter.request('POST', batchPath, post(b)))
    expect(readBatchReply(reply).map(({ status }) => status)).toEqual([201, 201, 201])
    expect(upstream.seen.filter((seen) => seen.body.includes('stuck')).length).toBe(28)
    await upstream.close()
  })

  it('takes turns with another client', async () => {
    const slowly: Answer = (seen, response) => void setTimeout(() => void echoRecord(seen, response), 20)
    const upstream = await startUpstream(slowly)
    const adapter = await startAdapter(upstream.url, { v3: { connections: 3 } })
    for (const own of [a, b]) await adapter.request('POST', batchPath, post(own))
    const large = adapter.request('POST', batchPath, post(a, batchOf(flatRecords(300))))
    await upstream.arrived(6 + 10)
    const reply = await timed(adapter.request('POST', batchPath, post(b, batchOf(flatRecords(20)))))
    expect(readBatchReply(reply).every(({ status }) => status === 201)).toBe(true)
    expect(upstream.seen.length).toBeLessThan(6 + 300)
    expect((await large).status).toBe(200)
  })
})

describe('the queue of the callsPerSecond limit', () => {
  it('serves another client while requests with wrong tokens fill the queue', async () => {
    const upstream = await startUpstream(({ headers }, response) => {
      response.statusCode = headers.authorization === 'bearer good' ? 200 : 401
      response.end('{}')
    })
    const partners = [{ id: 'acme', match: { any: true }, v3: { callsPerSecond: 5 } }]
    // At the end of the test, the adapter does not wait for the queue to drain.
    const adapter = await startAdapter(upstream.url, { partners, listen: { port: 0, drainMs: 100 } })
    // All requests share one subscription key and therefore one rate. The tokens distinguish the clients.
    const good = client('key')
    await adapter.request('GET', '/V3/x', { headers: good })
    const bad = client('key', 'bad')
    await crowd(adapter, 60, requestOf('GET /V3/x', bad).repeat(5))
    await expect.poll(() => metric(adapter, 'queue_refused_total', { reason: 'full' })).toBeGreaterThan(30)
    const reply = await timed(adapter.request('GET', '/V3/x', { headers: good }))
    expect(reply.status).toBe(200)
  })
})
