import { describe, expect, it, onTestFinished } from 'vitest'

import { type Answer, startRawUpstream, startUpstream } from '../support/scripted-upstream.ts'
import { startAdapter } from '../support/start-adapter.ts'
import { client, crowd, metric, requestOf, timed, underWay } from './support/crowd.ts'

/** Answers like a service that accepts one token. */
const judge: Answer = ({ headers }, response) => {
  response.statusCode = headers.authorization === 'bearer good' ? 200 : 401
  response.end('{}')
}

/** Starts a service that answers like `judge`. It reads the body of a request without storing it, and answers after the body. */
function startJudge(): ReturnType<typeof startRawUpstream> {
  return startRawUpstream((request, response) => {
    request.on('error', () => undefined).resume()
    request.once('end', () => {
      response.statusCode = request.headers.authorization === 'bearer good' ? 200 : 401
      response.end('{}')
    })
  })
}

const a = client('key-a')
const b = client('key-b')

/** Repeatedly sends one more byte over each connection, like an attack with one byte every 5 s, but faster. */
function dribble(clients: readonly { send(text: string): void }[], everyMs: number): void {
  const timer = setInterval(() => {
    for (const one of clients) one.send('x')
  }, everyMs)
  onTestFinished(() => clearInterval(timer))
}

describe('a client that uploads slowly', () => {
  it.each([
    ['has a wrong token and sends small bodies', client('key-a', 'bad'), 1_000, 1],
    ['has an accepted token and sends small bodies', a, 1_000, 1],
    ['has a wrong token and sends large bodies', client('key-a', 'bad'), 1_000_000, 200_000],
    ['has an accepted token and sends large bodies', a, 1_000_000, 200_000],
  ])(
    'does not block the pass-through of another client during 32 uploads (the first client %s)',
    async (_name, headers, length, sent) => {
      const upstream = await startJudge()
      const adapter = await startAdapter(upstream.url)
      for (const own of [a, b]) await adapter.request('GET', '/V3/x', { headers: own })
      const slow = await crowd(
        adapter,
        32,
        requestOf('PATCH /V3/LearnerPersonals', headers, `Content-Length: ${length}\r\n`, 'x'.repeat(sent)),
      )
      dribble(slow, 500)
      await underWay(adapter, 32)
      for (let count = 0; count < 5; count += 1) {
        const reply = await timed(adapter.request('GET', '/V3/x', { headers: b }))
        expect(reply.status).toBe(200)
      }
      const write = await timed(adapter.request('PATCH', '/V3/LearnerPersonals', { headers: b, body: '{}' }))
      expect(write.status).toBe(200)
    },
  )

  it('is cut off with 408, or with 504 if part of a write was forwarded', async () => {
    const upstream = await startJudge()
    const adapter = await startAdapter(
      upstream.url,
      {},
      { slowClients: { uploadMs: 400, minBytesPerSecond: 100 } },
    )
    const [small] = await crowd(
      adapter,
      1,
      requestOf('PATCH /V3/LearnerPersonals', a, 'Content-Length: 1000\r\n', 'x'),
    )
    const large = 'Content-Length: 1000000\r\n'
    const [write] = await crowd(
      adapter,
      1,
      requestOf('PATCH /V3/LearnerPersonals', a, large, 'x'.repeat(200_000)),
    )
    const [read] = await crowd(adapter, 1, requestOf('GET /V3/x', a, large, 'x'.repeat(200_000)))
    if (small === undefined || write === undefined || read === undefined) throw new Error('no clients')
    dribble([small, write, read], 100)
    const [refused, unknown, safe] = await Promise.all([small, write, read].map((one) => one.untilClosed()))
    expect(refused).toMatch(/^HTTP\/1\.1 408 [^]*Connection: close[^]*"code":"ADP_SLOW_CLIENT"/)
    expect(unknown).toMatch(/^HTTP\/1\.1 504 [^]*"code":"ADP_OUTCOME_UNKNOWN"/)
    expect(safe).toMatch(/^HTTP\/1\.1 408 [^]*"code":"ADP_SLOW_CLIENT"/)
    expect(await metric(adapter, 'slow_clients_total', { phase: 'upload' })).toBe(3)
    await expect.poll(() => metric(adapter, 'connections_in_use', { kind: 'pass_through' })).toBe(0)
  })

  it('is not cut off if the service is the one that reads slowly', async () => {
    const upstream = await startRawUpstream((request, response) => {
      setTimeout(() => request.resume().once('end', () => response.end('late')), 1_500)
    })
    const adapter = await startAdapter(upstream.url, {}, { slowClients: { uploadMs: 200 } })
    const reply = await adapter.request('PATCH', '/V3/LearnerPersonals', {
      headers: a,
      body: Buffer.alloc(20_000_000),
    })
    expect([reply.status, reply.text]).toEqual([200, 'late'])
  })
})

describe('a client that reads its replies slowly', () => {
  const size = 16_000_000
  const body = Buffer.alloc(size, 'x')
  const large: Answer = ({ url }, response) => {
    if (url === '/V3/large') response.end(body)
    else response.end('{}')
  }

  it('does not block the pass-through of another client during 32 replies', async () => {
    const upstream = await startUpstream(large)
    const adapter = await startAdapter(upstream.url, { v3: { connections: 8 } })
    for (const own of [a, b]) await adapter.request('GET', '/V3/x', { headers: own })
    const slow = await crowd(adapter, 32, '')
    for (const one of slow) {
      one.socket.pause()
      one.send(requestOf('GET /V3/large', a))
    }
    await expect.poll(() => metric(adapter, 'connections_in_use'), { timeout: 60_000 }).toBe(7)
    const reply = await timed(adapter.request('GET', '/V3/x', { headers: b }))
    expect(reply.status).toBe(200)
  })

  it('is disconnected if it reads slower than the limit', async () => {
    const upstream = await startUpstream(large)
    const adapter = await startAdapter(
      upstream.url,
      {},
      { slowClients: { replyMs: 400, minBytesPerSecond: 1_000_000 } },
    )
    const slow = await crowd(adapter, 4, '')
    for (const one of slow) {
      one.socket.pause()
      one.send(requestOf('GET /V3/large', a))
    }
    await expect
      .poll(() => metric(adapter, 'slow_clients_total', { phase: 'reply' }), { timeout: 60_000 })
      .toBe(4)
    await expect.poll(() => metric(adapter, 'connections_in_use', { kind: 'pass_through' })).toBe(0)
  })

  it('receives its whole reply if it reads faster than the limit', async () => {
    const upstream = await startUpstream(large)
    const adapter = await startAdapter(
      upstream.url,
      {},
      { slowClients: { replyMs: 5_000, minBytesPerSecond: 1_000 } },
    )
    const [one] = await crowd(adapter, 1, requestOf('GET /V3/large', a, 'Connection: close\r\n'))
    let received = 0
    one?.socket.removeAllListeners('data').on('data', (chunk: Buffer) => {
      received += chunk.length
      one.socket.pause()
      setTimeout(() => one.socket.resume(), 1)
    })
    await one?.untilClosed()
    expect(received).toBeGreaterThan(size)
  })
})

describe('the pool of connections to V3', () => {
  it('gives nearly all connections to a client that is alone', async () => {
    const held: (() => void)[] = []
    const upstream = await startUpstream((seen, response) => {
      if (seen.url === '/V3/x') return judge(seen, response)
      held.push(() => response.end('{}'))
      return undefined
    })
    const adapter = await startAdapter(upstream.url, {}, { acquireMs: 300 })
    await adapter.request('GET', '/V3/x', { headers: a })
    const slow = await crowd(adapter, 40, requestOf('GET /V3/held', a, 'Connection: close\r\n'))
    await upstream.arrived(1 + 28)
    const newcomer = await timed(adapter.request('GET', '/V3/x', { headers: b }))
    expect(newcomer.status).toBe(200)
    const refused = await Promise.race(slow.map((one) => one.untilClosed()))
    expect(refused).toMatch(/^HTTP\/1\.1 503 [^]*Retry-After: 5[^]*"code":"ADP_OVERLOADED"/)
    await expect.poll(() => metric(adapter, 'shares_refused_total')).toBe(12)
    expect(held.length).toBe(28)
    for (const answer of held) answer()
    const replies = await Promise.all(slow.map((one) => one.untilClosed()))
    expect(replies.filter((text) => text.startsWith('HTTP/1.1 200')).length).toBe(28)
  })

  it('gives at most a quarter of the connections to clients that V3 has not accepted', async () => {
    const upstream = await startUpstream((_seen, response) => void setTimeout(() => response.end('{}'), 300))
    const adapter = await startAdapter(upstream.url)
    await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        crowd(adapter, 1, requestOf('GET /V3/x', client(`key-${index}`, 'bad'))),
      ),
    )
    await upstream.arrived(8)
    expect(await metric(adapter, 'connections_in_use', { kind: 'pass_through' })).toBe(8)
    expect(upstream.seen.length).toBe(8)
  })
})
