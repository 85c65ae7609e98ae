import { Agent, request } from 'undici'
import { describe, expect, it, onTestFinished } from 'vitest'

import { systemClock } from '../../src/clock.ts'
import { createConnections, toClientOptions } from '../../src/upstream/connections.ts'
import { CallGroup, type Connections, sendCall } from '../../src/upstream/index.ts'
import { startRawUpstream } from '../support/raw-upstream.ts'

const timeouts = { connectMs: 10_000, headersMs: 10_000 }

/** Sends one POST. Returns the status of the reply, followed by the body or by the message of the failure. */
async function post(connections: Connections): Promise<string> {
  const end = await sendCall(
    connections,
    { path: '/', method: 'POST', headers: [], body: '{}' },
    {},
    { clock: systemClock, group: new CallGroup(systemClock, () => 20_000), maxBytes: 10_000 },
  )
  return `${end.status} ${end.failure?.message ?? end.body.join().toString('latin1')}`
}

/** Connects to a service that answers each request with these bytes in two pieces, cut at `cut`. */
async function connect(reply: string, cut = 0): Promise<Connections> {
  const { url } = await startRawUpstream((socket) => {
    socket.setNoDelay(true)
    socket.write(reply.slice(0, cut), 'latin1', () => {
      setImmediate(() => socket.write(reply.slice(cut), 'latin1'))
    })
  })
  const connections = createConnections(url, { connections: 1, timeouts, clock: systemClock })
  onTestFinished(() => connections.close())
  return connections
}

const whole = (body: string): string =>
  `HTTP/1.1 201 Created\r\nContent-Length: ${body.length}\r\n\r\n${body}`

describe('an unexpected 100 Continue from an upstream', () => {
  const text =
    'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 100\r\n\r\nHTTP/1.1 103 x\r\nX: y\r\n\r\nHTTP/1.1 100 a b\r\nX: y\r\n\r\n'

  it.each([
    ['alone', 'HTTP/1.1 100 Continue\r\n\r\n'],
    ['without a reason phrase', 'HTTP/1.1 100\r\n\r\n'],
    ['with fields', 'HTTP/1.1 100 Continue\r\nA: HTTP/1.1 100 Continue\r\n\r\n'],
    ['among other interim responses', text],
    ['many times', 'HTTP/1.1 100 Continue\r\n\r\n'.repeat(500)],
  ])('is skipped if it comes %s', async (_what, interim) => {
    const connections = await connect(interim + whole('yes'))
    expect([await post(connections), await post(connections)]).toEqual(['201 yes', '201 yes'])
  })

  it('is skipped if its bytes arrive in several pieces', async () => {
    const reply = text + whole('yes')
    for (let cut = 1; cut < text.length + 15; cut += 1)
      expect([cut, await post(await connect(reply, cut))]).toEqual([cut, '201 yes'])
  })

  it('is not removed from the body of a reply', async () => {
    const body = 'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 100 Continue'
    for (const cut of [0, whole(body).indexOf('HTTP/1.1 100')])
      expect(await post(await connect(whole(body), cut))).toBe(`201 ${body}`)
  })

  it('is not mistaken for the reply', async () => {
    const { url } = await startRawUpstream((socket) => socket.end('HTTP/1.1 100 Continue\r\n\r\n'))
    const connections = createConnections(url, { connections: 1, timeouts, clock: systemClock })
    onTestFinished(() => connections.close())
    expect(await post(connections)).toMatch(/^0 /)
  })

  it('is also skipped by the connections of an undici Agent', async () => {
    const { url } = await startRawUpstream((socket) => socket.write(text + whole('yes')))
    const dispatcher = new Agent(toClientOptions(timeouts))
    onTestFinished(() => dispatcher.destroy())
    const { statusCode, body } = await request(url, { dispatcher })
    expect([statusCode, await body.text()]).toEqual([201, 'yes'])
  })
})
