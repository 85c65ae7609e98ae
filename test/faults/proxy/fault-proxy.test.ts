import { once } from 'node:events'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'

import { Client } from 'undici'
import { describe, expect, onTestFinished, test } from 'vitest'

import { createRandom } from '../../../src/sandbox/random.ts'
import { RawClient } from '../../support/raw-client.ts'
import { replyWith, startUpstream } from '../../support/scripted-upstream.ts'
import { type ConnectionFault, drawFaults, type Fault, type FaultPlan } from './fault.ts'
import { type FaultProxyOptions, startFaultProxy } from './fault-proxy.ts'

/** Returns a plan that applies these faults to one request after another, and then lets every request pass. */
function script(...faults: Fault[]): FaultPlan {
  return { connection: () => 'pass', request: () => faults.shift() ?? { kind: 'pass' } }
}

async function proxyTo(options: FaultProxyOptions) {
  const proxy = await startFaultProxy(options)
  onTestFinished(() => proxy.close())
  const client = new Client(proxy.url)
  onTestFinished(() => client.destroy())
  const post = async (body = 'mark'): Promise<string> => {
    const reply = await client.request({ path: '/records', method: 'POST', body })
    return `${reply.statusCode} ${await reply.body.text()}`
  }
  return { proxy, post }
}

/** Starts a service that counts the requests that reach it. */
async function service(body = 'x'.repeat(1_000)) {
  const upstream = await startUpstream(replyWith(201, body))
  return { upstream, targets: [upstream.port], whole: `201 ${body}` }
}

describe('the fault proxy, for an HTTP request', () => {
  const rows: [fault: Fault, applied: number, outcome: RegExp][] = [
    [{ kind: 'pass' }, 1, /^201 x{1000}$/],
    [{ kind: 'resetBefore' }, 0, /^lost/],
    [{ kind: 'resetAfter' }, 1, /^lost/],
    [{ kind: 'truncate', bytes: 0 }, 1, /^lost/],
    [{ kind: 'truncate', bytes: 700 }, 1, /^lost/],
    [{ kind: 'slow', bytesPerSecond: 10_000 }, 1, /^201 x{1000}$/],
    [{ kind: 'stall', ms: 20 }, 1, /^201 x{1000}$/],
  ]
  test.each(rows)(
    'applies the fault %o, and the service gets the request %i times',
    async (fault, applied, outcome) => {
      const { upstream, targets, whole } = await service()
      const { proxy, post } = await proxyTo({ targets, plan: script(fault) })
      const outcomeText = await post().catch((error: unknown) => `lost ${String(error)}`)
      expect([outcomeText, upstream.seen.length]).toEqual([expect.stringMatching(outcome), applied])
      expect([await post(), upstream.seen.length]).toEqual([whole, applied + 1])
      expect(proxy.counts()[fault.kind]).toBe(fault.kind === 'pass' ? 2 : 1)
    },
  )

  test('forwards two requests over one connection', async () => {
    const { upstream, targets } = await service()
    const { post } = await proxyTo({ targets, plan: script({ kind: 'pass' }, { kind: 'pass' }) })
    await post()
    await post()
    expect([upstream.seen.length, upstream.connections()]).toEqual([2, 1])
  })

  test('forwards a request and its reply unchanged, for every length and framing', async () => {
    const upstream = await startUpstream((seen, response) => {
      for (let at = 0; at < seen.body.length; at += 10_000) response.write(seen.body.slice(at, at + 10_000))
      response.end()
    })
    const { post } = await proxyTo({ targets: [upstream.port] })
    const body = 'abcdefghij'.repeat(30_000)
    expect(await post(body)).toBe(`200 ${body}`)
  })
})

describe('the fault proxy, for a connection', () => {
  test('refuses a connection without a call to the service if the plan says `refuse`', async () => {
    const { upstream, targets, whole } = await service()
    const faults = ['refuse', 'pass'] as const
    let at = 0
    const { proxy, post } = await proxyTo({
      targets,
      plan: { ...script(), connection: () => faults[at++] ?? 'pass' },
    })
    await expect(post()).rejects.toThrow()
    expect([await post(), upstream.seen.length, proxy.counts().refuse]).toEqual([whole, 1, 1])
  })

  /** Opens a raw connection to an echo service through the proxy. */
  const echoed = async (fault: ConnectionFault) => {
    const echo = createServer((socket) => socket.on('error', () => undefined).pipe(socket))
    echo.listen(0, '127.0.0.1')
    await once(echo, 'listening')
    onTestFinished(() => void echo.close())
    const targets = [(echo.address() as AddressInfo).port]
    const { proxy } = await proxyTo({
      targets,
      wire: 'raw',
      plan: { ...script(), connection: () => fault },
    })
    return { proxy, client: await RawClient.open(proxy.port) }
  }

  test('passes bytes of any protocol in both directions, and cuts the connection after a number of bytes from the service', async () => {
    const { proxy, client } = await echoed({ cutAfter: 4 })
    client.send('ab')
    await client.until('ab')
    client.send('cdef')
    expect(['ab', 'abcd']).toContain(await client.untilClosed())
    expect(proxy.counts().cut).toBe(1)
  })

  test('halts a connection of any protocol after a number of bytes, and then continues', async () => {
    const { proxy, client } = await echoed({ haltAfter: 2, haltMs: 200 })
    client.send('ab')
    await client.until('ab')
    const sentMs = performance.now()
    client.send('cd')
    await client.until('abcd')
    expect(performance.now() - sentMs).toBeGreaterThan(150)
    expect(proxy.counts().halt).toBe(1)
  })

  test('connects to its targets in turn, and skips an unreachable target', async () => {
    const [one, gone, other] = [await service(), await service(), await service()]
    await gone.upstream.close()
    const targets = [one, gone, other].flatMap((each) => each.targets)
    const proxy = await startFaultProxy({ targets })
    onTestFinished(() => proxy.close())
    for (let turn = 0; turn < 4; turn += 1) {
      const client = new Client(proxy.url)
      const { body } = await client.request({ path: '/', method: 'GET' })
      await body.dump()
      await client.close()
    }
    expect([one.upstream.seen.length, other.upstream.seen.length]).toEqual([2, 2])
  })

  test('breaks the connection if no target can be reached', async () => {
    const gone = await service()
    await gone.upstream.close()
    const { post } = await proxyTo({ targets: gone.targets })
    await expect(post()).rejects.toThrow()
  })
})

describe('a plan of drawFaults', () => {
  const shares = {
    refuse: 0.1,
    cut: 0.1,
    resetBefore: 0.1,
    resetAfter: 0.1,
    truncate: 0.1,
    stall: 0.1,
    slow: 0.1,
  }
  const draw = (seed: number): unknown[] => {
    const plan = drawFaults(createRandom(seed, 'faults'), shares)
    return Array.from({ length: 1_000 }, () => [plan.connection(), plan.request('')])
  }

  test('draws the same faults for equal seeds, and different faults for different seeds', () => {
    expect(draw(1)).toEqual(draw(1))
    expect(draw(1)).not.toEqual(draw(2))
  })

  test('draws each fault about as often as configured', () => {
    const plan = drawFaults(createRandom(1, 'faults'), { resetBefore: 0.2, truncate: 0.1 })
    const seen = { pass: 0, resetBefore: 0, truncate: 0, resetAfter: 0, stall: 0, slow: 0 }
    for (let turn = 0; turn < 10_000; turn += 1) seen[plan.request('').kind] += 1
    expect(Math.abs(seen.resetBefore - 2_000)).toBeLessThan(150)
    expect(Math.abs(seen.truncate - 1_000)).toBeLessThan(120)
    expect(seen.pass).toBe(10_000 - seen.resetBefore - seen.truncate)
  })

  test('draws no fault once the proxy has stopped its faults', async () => {
    const { targets, whole } = await service()
    const { proxy, post } = await proxyTo({
      targets,
      plan: drawFaults(createRandom(1, 'x'), { resetBefore: 1 }),
    })
    await expect(post()).rejects.toThrow()
    proxy.stopFaults()
    expect(await post()).toBe(whole)
  })
})
