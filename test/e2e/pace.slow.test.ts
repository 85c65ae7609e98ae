import { describe, expect, it } from 'vitest'

import { sandboxHeaders, startSandbox } from '../sandbox/start-sandbox.ts'
import { batchOf, flatRecords, postBatch, statusesOf } from '../support/batch-request.ts'
import { RawClient, requestText } from '../support/raw-client.ts'
import { type Answer, echoRecord, replyWith, startUpstream } from '../support/scripted-upstream.ts'
import { readSamples } from '../support/read-samples.ts'
import {
  type Adapter,
  adapterConfig,
  onePartner,
  type Reply,
  startAdapter,
  startWithV3,
} from '../support/start-adapter.ts'
import { sandboxRegister } from './support/sandbox-register.ts'

const RECORDS = '/V2/Attendance/AttendanceRecords'
const read = `${RECORDS}?$filter=Present%20eq%20true`
const tooMany = replyWith(429, {
  statusCode: 429,
  message: 'Rate limit is exceeded. Try again in 1 seconds.',
})

const empty: Answer = (seen, response) =>
  (seen.method === 'POST' ? echoRecord : replyWith(200, { value: [] }))(seen, response)

const paced = (callsPerSecond: number, v3: object = {}): { partners: object[] } =>
  onePartner({ v3: { callsPerSecond, ...v3 } })

function gets(adapter: Adapter, count: number, path = read): Promise<Reply>[] {
  return Array.from({ length: count }, () => adapter.request('GET', path))
}

const anyNumber: unknown = expect.any(Number)

const queueOf = ({ headers }: Reply): number =>
  Number(/^queue;dur=(\d+)$/.exec(String(headers['server-timing']))?.[1])

describe('the adapter, with a limit of five calls a second to V3', () => {
  it('causes no 429 from a service with the same limit, while several clients read and one posts a register', async () => {
    const sandbox = await startSandbox({ callsPerSecond: 5 })
    const adapter = await startAdapter(sandbox.url, paced(5))
    const register = await sandboxRegister(sandbox, 10)
    const week = `${RECORDS}?$filter=AttendableEventStart%20ge%202026-03-02T00:00:00Z%20and%20AttendableEventStart%20lt%202026-03-03T00:00:00Z`
    const [batch, ...replies] = await Promise.all([
      postBatch(adapter, register.batch, register.headers),
      ...[1, 2, 3, 4].map(() => adapter.request('GET', week, { headers: sandboxHeaders })),
    ])
    expect(statusesOf(batch)).toEqual(Array(10).fill(201))
    expect(replies.map(({ status }) => status)).toEqual([200, 200, 200, 200])
    expect(Math.max(...replies.map(queueOf))).toBeGreaterThan(900)
  })

  it('sends writes before reads, and treats a passed-through request as a read or a write by its method', async () => {
    const upstream = await startUpstream(empty)
    // The rate is so low that all requests wait in the queue before the second call is sent.
    const adapter = await startAdapter(upstream.url, paced(0.05, { budgetMs: 300_000 }))
    const first = gets(adapter, 1)
    await upstream.arrived(1)
    const others = [
      ...gets(adapter, 2),
      ...gets(adapter, 1, '/V3/LearnerPersonals'),
      adapter.request('PATCH', '/V3/LearnerPersonals(1)', { body: '{}' }),
      postBatch(adapter, batchOf(flatRecords(4))),
    ]
    const waiting = async (): Promise<(number | undefined)[]> => {
      const samples = await readSamples(adapter)
      return ['read', 'write'].map((priority) =>
        samples.get(`markbridge_queue_length{priority="${priority}"}`),
      )
    }
    await expect.poll(waiting).toEqual([3, 5])
    await adapter.app.reload(() => Promise.resolve(adapterConfig(upstream.url, paced(5))))
    // The extra read makes the new rate take effect: the rate of a subscription key changes with the next request.
    const replies = await Promise.all([...first, ...others, ...gets(adapter, 1)])
    const methods = upstream.seen.map(({ method }) => (method === 'GET' ? 'read' : 'write'))
    expect(methods).toEqual(['read', ...Array<string>(5).fill('write'), ...Array<string>(4).fill('read')])
    expect(replies.map(({ status }) => status)).toEqual(Array(7).fill(200))
    const told = adapter.events().filter(({ msg }) => msg === 'passed through')
    expect(told.map(({ method, status, queuedMs }) => [method, status, Number(queuedMs) > 0])).toEqual([
      ['PATCH', 200, true],
      ['GET', 200, true],
    ])
  })

  it('reports in the reply and in the log how long a read waited in the queue', async () => {
    const { adapter } = await startWithV3(empty, paced(2))
    const replies = await Promise.all(gets(adapter, 3))
    expect(
      replies
        .map(queueOf)
        .map((ms) => ms > 900)
        .sort(),
    ).toEqual([false, false, true])
    const read = { msg: 'read answered', partner: 'acme', kind: 'collection', status: 200, rows: 0, pages: 1 }
    expect(adapter.events().slice(1)).toEqual(
      replies.map(queueOf).sort((a, b) => a - b).map((queuedMs) => ({ ...read, queuedMs, durationMs: anyNumber })),
    ) // prettier-ignore
  })
})

describe('a call that would wait in the queue for too long', () => {
  it.each([read, '/V3/LearnerPersonals'])(
    'gets 503 and is not sent if the request goes to %s',
    async (path) => {
      const { upstream, adapter } = await startWithV3(empty, paced(1, { budgetMs: 300 }))
      const [first, second] = await Promise.all(gets(adapter, 2, path))
      expect([first?.status, second?.status, second?.headers['retry-after']]).toEqual([200, 503, '5'])
      expect(second?.text).toContain('ADP_BUDGET_EXCEEDED')
      expect(upstream.seen.length).toBe(1)
    },
  )

  it('leaves the queue when the client disconnects, and no failure is logged', async () => {
    const { upstream, adapter } = await startWithV3(empty, paced(1))
    await Promise.all(gets(adapter, 1))
    for (const path of [read, '/V3/LearnerPersonals']) {
      const client = await RawClient.open(adapter.port, requestText(`GET ${path}`))
      await expect
        .poll(async () =>
          [...(await readSamples(adapter))].some(
            ([name, value]) => name.startsWith('markbridge_queue_length') && value > 0,
          ),
        )
        .toBe(true)
      // Resets the connection, because a client that only closes its sending side may still read its reply.
      client.socket.resetAndDestroy()
    }
    await expect
      .poll(() => adapter.events().slice(2))
      .toEqual([
        expect.objectContaining({ msg: 'read answered', status: 499, rows: 0, pages: 0 }),
        expect.objectContaining({ msg: 'passed through', status: 499 }),
      ])
    expect((await Promise.all(gets(adapter, 1)))[0]?.status).toBe(200)
    expect(upstream.seen.length).toBe(2)
  })
})

describe('a 429 of V3 to a passed-through request', () => {
  it('reaches the client, and delays later calls with the same subscription key', async () => {
    const upstream = await startUpstream((seen, response) =>
      (seen.index === 0 ? replyWith(429, 'slow', { 'Retry-After': '1' }) : empty)(seen, response),
    )
    const adapter = await startAdapter(upstream.url, paced(5))
    const askedMs = Date.now()
    const [refused] = await Promise.all(gets(adapter, 1, '/V3/LearnerPersonals'))
    expect([refused?.status, refused?.text, refused?.headers['retry-after']]).toEqual([429, 'slow', '1'])
    const sinceMs = Date.now()
    const [next] = await Promise.all(gets(adapter, 1))
    // V3's 429 arrived at some moment between `askedMs` and `sinceMs`, and the pause of one second began then. The test therefore adds the
    // time between the two to the wait in the queue.
    expect([next?.status, next !== undefined && queueOf(next) + sinceMs - askedMs > 900]).toEqual([200, true])
  })
})

describe('a read that V3 throttles or drops', () => {
  const rows: [name: string, answer: Answer, waitedMs: number][] = [
    ['a 429', tooMany, 950],
    ['a 503 with Retry-After', replyWith(503, '', { 'Retry-After': '1' }), 950],
    ['a connection that breaks', (_seen, response) => void response.socket?.resetAndDestroy(), 240],
  ]
  it.each(rows)('is sent again after %s', async (_name, answer, waitedMs) => {
    const upstream = await startUpstream((seen, response) =>
      (seen.index === 0 ? answer : empty)(seen, response),
    )
    const adapter = await startAdapter(upstream.url, paced(5))
    const startedMs = performance.now()
    const [reply] = await Promise.all(gets(adapter, 1))
    expect([reply?.status, upstream.seen.length]).toEqual([200, 2])
    expect(performance.now() - startedMs).toBeGreaterThan(waitedMs)
  })
})
