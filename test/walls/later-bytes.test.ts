import { readFile } from 'node:fs/promises'

import { describe, expect, it, test } from 'vitest'

import { headerOf, type RawMessage, readMessages } from '../e2e/support/raw-message.ts'
import { startSandbox } from '../sandbox/start-sandbox.ts'
import { batchOf, batchPath, flatRecords, readBatchReply } from '../support/batch-request.ts'
import { missingBalancer, nginx, startBalancer } from '../support/load-balancers/start-balancer.ts'
import { RawClient, requestText } from '../support/raw-client.ts'
import { echoRecord, startUpstream } from '../support/scripted-upstream.ts'
import type { AppOverrides } from '../../src/index.ts'
import { type Adapter, startAdapter } from '../support/start-adapter.ts'
import { metric } from './support/crowd.ts'
import { tails } from './support/later-bytes.ts'

const unfinished = 'GET /healthz HTTP/1.1\r\nHost: x\r\nX-Un'

const RECORDS = 3
const { headers, body } = batchOf(flatRecords(RECORDS))
const type = `Content-Type: ${headers['Content-Type'] ?? ''}\r\n`
const counted = requestText(`POST ${batchPath}`, `${type}Content-Length: ${body.length}\r\n`, body)
const chunks = `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`
const chunked = requestText(`POST ${batchPath}`, `${type}Transfer-Encoding: chunked\r\n`, chunks)
const asOld = (request: string, lines = ''): string =>
  request.replace(' HTTP/1.1\r\n', ` HTTP/1.0\r\n${lines}`)

const isRefused = (adapter: Adapter): boolean =>
  adapter.events().some(({ msg }) => msg === 'bytes after a request refused')

/** Starts the adapter in front of services that answer only after the adapter has rejected the bytes after the request. */
async function startHeld(settings: object = {}, overrides: AppOverrides = {}) {
  const { promise: released, resolve: release } = Promise.withResolvers<undefined>()
  const upstream = await startUpstream(async (seen, response) => {
    await released
    if (seen.url.includes('$batch')) response.end('the reply of V2')
    else void echoRecord(seen, response)
  })
  const adapter = await startAdapter(upstream.url, { v2: { baseUrl: upstream.url }, ...settings }, overrides)
  const refused = async (): Promise<void> => {
    await expect.poll(() => isRefused(adapter)).toBe(true)
    release(undefined)
  }
  return { adapter, upstream, refused, release }
}

/** Returns all replies of a connection. A last reply without a length ends with the connection, as in HTTP/1.0 (RFC 9112 6.3). */
function readAll(text: string): RawMessage[] {
  const bytes = Buffer.from(text, 'latin1')
  const replies = readMessages(bytes)
  const [only] = replies
  if (only === undefined || /^(?:content-length|transfer-encoding):/im.test(text.split('\r\n\r\n')[0] ?? ''))
    return replies
  return [{ ...only, body: bytes.subarray(bytes.indexOf('\r\n\r\n') + 4) }]
}
const statusOf = ({ startLine }: RawMessage): number => Number(startLine.split(' ')[1])

/** Returns the statuses of all replies. The first reply has a part for each record. */
function statusesAfterBatch(text: string, records = RECORDS): number[] {
  const replies = readAll(text)
  const [first] = replies
  if (first === undefined) throw new Error(`no reply: ${text}`)
  const reply = {
    headers: { 'content-type': headerOf(first, 'content-type') },
    text: first.body.toString('latin1'),
  }
  expect(readBatchReply(reply).map(({ status }) => status)).toEqual(Array(records).fill(201))
  return replies.map(statusOf)
}

describe('the adapter, for bytes after a batch on the same connection', () => {
  const kept = Object.entries(tails).flatMap(([name, [tail, status]]) =>
    Object.entries({ 'framed by its length': counted, chunked }).map(
      ([framing, request]) => [name, framing, request + tail, status] as const,
    ),
  )

  it.each(kept)(
    'replies to the batch and then rejects the bytes if they are %s and the batch is %s',
    async (_name, _framing, bytes, status) => {
      const { adapter, upstream, refused } = await startHeld()
      const client = await RawClient.open(adapter.port, bytes)
      await refused()
      const text = await client.untilClosed()
      expect(statusesAfterBatch(text)).toEqual([200, status])
      expect(readAll(text).map((reply) => headerOf(reply, 'connection'))).toEqual(['keep-alive', 'close'])
      expect(upstream.seen).toHaveLength(RECORDS)
      expect(adapter.events()).toContainEqual({ msg: 'bytes after a request refused', status, owed: 1 })
      expect(await metric(adapter, 'later_bytes_refused_total')).toBe(1)
    },
  )

  // The reply to each of these requests is the last reply on its connection, so no other reply may follow (RFC 9112 9.6).
  const last = Object.entries(tails).flatMap(([name, [tail]]) =>
    Object.entries({
      'an HTTP/1.0 request': asOld(counted),
      'an HTTP/1.0 request with keep-alive': asOld(counted, 'Connection: keep-alive\r\n'),
      'a request with Connection: close': counted.replace('Host:', 'Connection: close\r\nHost:'),
    }).map(([way, request]) => [name, way, request + tail] as const),
  )

  it.each(last)(
    'sends no reply to the bytes if they are %s and the batch is %s',
    async (_name, _way, bytes) => {
      const { adapter, refused } = await startHeld()
      const client = await RawClient.open(adapter.port, bytes)
      await refused()
      expect(statusesAfterBatch(await client.untilClosed())).toEqual([200])
    },
  )

  it('sends 408 after the reply to the batch if the bytes begin a request that never ends', async () => {
    const { adapter, refused } = await startHeld({}, { slowClients: { headersMs: 200 } })
    const client = await RawClient.open(adapter.port, counted + unfinished)
    await refused()
    expect(statusesAfterBatch(await client.untilClosed())).toEqual([200, 408])
  })

  it('does not serve a request whose last bytes arrive after its head has timed out', async () => {
    const { adapter, upstream, refused, release } = await startHeld({}, { slowClients: { headersMs: 200 } })
    const client = await RawClient.open(adapter.port, counted + counted.slice(0, 100))
    await expect.poll(() => isRefused(adapter)).toBe(true)
    client.send(counted.slice(100))
    release(undefined)
    await refused()
    expect(statusesAfterBatch(await client.untilClosed())).toEqual([200, 408])
    expect(upstream.seen).toHaveLength(RECORDS)
  }) // prettier-ignore

  it.each(['\0', unfinished])(
    'replies to the bytes %j even if the client then stops sending',
    async (tail) => {
      const { adapter, refused } = await startHeld()
      const client = await RawClient.open(adapter.port)
      client.socket.end(Buffer.from(counted + tail, 'latin1'))
      await refused()
      expect(statusesAfterBatch(await client.untilClosed())).toEqual([200, 400])
    },
  )

  it('replies to all earlier requests, in order, before it replies to the bytes', async () => {
    const { adapter, refused } = await startHeld()
    const health = 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n'
    const client = await RawClient.open(adapter.port, `${counted}${health}${counted}\0`)
    await refused()
    expect(statusesAfterBatch(await client.untilClosed())).toEqual([200, 200, 200, 400])
    expect(adapter.events()).toContainEqual({ msg: 'bytes after a request refused', status: 400, owed: 3 })
  })

  it('finishes a reply that it had begun before the bytes arrived', async () => {
    const { promise: refusal, resolve: release } = Promise.withResolvers<undefined>()
    const upstream = await startUpstream(async (seen, response) => {
      if (seen.index >= 16) await refusal
      void echoRecord(seen, response)
    })
    const adapter = await startAdapter(upstream.url)
    const many = batchOf(flatRecords(300))
    const fields = `Content-Type: ${many.headers['Content-Type'] ?? ''}\r\nContent-Length: ${many.body.length}\r\n`
    const client = await RawClient.open(adapter.port, requestText(`POST ${batchPath}`, fields, many.body))
    await client.until('201 Created')
    client.send('\0')
    await expect.poll(() => isRefused(adapter)).toBe(true)
    release(undefined)
    expect(statusesAfterBatch(await client.untilClosed(), 300)).toEqual([200, 400])
  })

  it('returns the reply of V2 at stage legacy and then rejects the bytes', async () => {
    const { adapter, refused } = await startHeld({ partners: [{ id: 'acme', match: { any: true }, stage: 'legacy' }] }) // prettier-ignore
    const client = await RawClient.open(adapter.port, `${counted}\0`)
    await refused()
    const replies = readAll(await client.untilClosed())
    expect(replies.map(statusOf)).toEqual([200, 400])
    expect(replies[0]?.body.toString()).toBe('the reply of V2')
  })

  it('ends a request when the client disconnects before the reply', async () => {
    const { adapter, release } = await startHeld()
    const client = await RawClient.open(adapter.port, requestText('GET /V3/x') + '\0')
    await expect.poll(() => isRefused(adapter)).toBe(true)
    client.socket.resetAndDestroy()
    await expect.poll(() => metric(adapter, 'in_flight_requests')).toBe(0)
    release(undefined)
  })
})

describe('the sandbox, for bytes after a request', () => {
  it.each(Object.entries(tails))(
    'answers a batch before it rejects later bytes that are %s',
    async (_name, [tail, status]) => {
      const sandbox = await startSandbox()
      const request = counted.replace('client-key', 'sandbox').replace('client-token', 'sandbox')
      const client = await RawClient.open(Number(new URL(sandbox.url).port), request + tail)
      const replies = readAll(await client.untilClosed())
      expect(replies.map(statusOf)).toEqual([200, status])
      expect(headerOf(replies[0] ?? { headers: [] }, 'content-type')).toMatch(/^multipart\/mixed/)
    },
  )

  it('replies to a recorded request that is followed by a NUL byte', async () => {
    const sandbox = await startSandbox()
    const bytes = await readFile(new URL('../../fixtures/later-bytes-nul/request.http', import.meta.url))
    const client = await RawClient.open(Number(new URL(sandbox.url).port), bytes)
    expect(readAll(await client.untilClosed()).map(statusOf)).toEqual([200, 400])
  })

  it('replies to a client that has stopped sending', async () => {
    const client = await RawClient.open(Number(new URL((await startSandbox()).url).port))
    client.socket.end(counted)
    expect(readAll(await client.untilClosed())).toHaveLength(1)
  })
})

describe.skipIf(missingBalancer(nginx) !== undefined)('nginx in front of the adapter', () => {
  // Only bytes with the status 400 are tested, because nginx has its own limit for a head (431) and its own reply to CONNECT (405).
  const shared = Object.entries(tails).filter(([, [, status]]) => status === 400)

  test.each(shared)(
    'leaves the replies unchanged if the bytes after a batch are %s',
    async (_name, [tail]) => {
      const upstream = await startUpstream()
      const adapter = await startAdapter(upstream.url)
      const { port } = await startBalancer(nginx, adapter.port)
      const outcomes: number[][] = []
      for (const each of [port, adapter.port]) {
        const client = await RawClient.open(
          each,
          counted.replace('adapter.test', 'markbridge.example') + tail,
        )
        outcomes.push(statusesAfterBatch(await client.untilClosed()))
      }
      expect(outcomes).toEqual([[200, 400], [200, 400]]) // prettier-ignore
    },
  )
})
