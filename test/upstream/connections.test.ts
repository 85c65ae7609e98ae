import { describe, expect, it, onTestFinished } from 'vitest'

import { systemClock } from '../../src/clock.ts'
import { type Connections, createConnections } from '../../src/upstream/connections.ts'
import { CallGroup, sendCall } from '../../src/upstream/index.ts'
import { type Answer, startUpstream } from '../support/scripted-upstream.ts'

/** Creates an upstream that answers 200 with the body of each request once the test opens the gate. */
function gate(): { answer: Answer; open: (count?: number) => void; held: () => string[] } {
  const held: { readonly body: string; readonly go: () => void }[] = []
  return {
    answer: ({ body }, response) =>
      void held.push({
        body,
        go: () => {
          response.statusCode = 200
          response.end(body)
        },
      }),
    open: (count = held.length) => {
      for (const { go } of held.splice(0, count)) go()
    },
    held: () => held.map(({ body }) => body),
  }
}

function connect(url: string, count: number): Connections {
  const connections = createConnections(url, {
    connections: count,
    timeouts: { connectMs: 10_000, headersMs: 300_000, bodyMs: 300_000 },
    clock: systemClock,
  })
  onTestFinished(() => connections.close())
  return connections
}

/** Sends a body. The outcome is the body of the reply, `lost` or `unsent`. */
function send(
  connections: Connections,
  body: string,
  headers: string[] = [],
): { readonly end: () => void; readonly outcome: Promise<string> } {
  const ended = new AbortController()
  const { signal } = ended
  const outcome = sendCall(
    connections,
    { path: '/', method: 'POST', headers, body },
    {},
    { clock: systemClock, group: new CallGroup(systemClock, () => 60_000), maxBytes: 1_000, signal },
  ).then(({ failure, sent, body: reply }) =>
    failure === undefined ? reply.join().toString() : sent ? 'lost' : 'unsent',
  )
  return { end: () => ended.abort(), outcome }
}

const outcomesOf = (sent: readonly { readonly outcome: Promise<string> }[]): Promise<string[]> =>
  Promise.all(sent.map(({ outcome }) => outcome))

describe('createConnections', () => {
  it('sends one request at a time over each connection, in the order of the calls', async () => {
    const { answer, open, held } = gate()
    const upstream = await startUpstream(answer)
    const connections = connect(upstream.url, 2)
    const sent = ['a', 'b', 'c', 'd', 'e'].map((body) => send(connections, body))
    await upstream.arrived(2)
    expect(held().sort()).toEqual(['a', 'b'])
    open()
    await upstream.arrived(4)
    expect(held().sort()).toEqual(['c', 'd'])
    open()
    await upstream.arrived(5)
    open()
    expect(await outcomesOf(sent)).toEqual(['a', 'b', 'c', 'd', 'e'])
    expect(upstream.connections()).toBe(2)
  })

  it('opens a connection only if no open connection is free', async () => {
    const upstream = await startUpstream(({ body }, response) => void response.end(body))
    const connections = connect(upstream.url, 8)
    for (const body of ['a', 'b', 'c']) expect(await send(connections, body).outcome).toBe(body)
    expect(upstream.connections()).toBe(1)
  })

  it('never sends a request that was cancelled while it waited', async () => {
    const { answer, open } = gate()
    const upstream = await startUpstream(answer)
    const connections = connect(upstream.url, 1)
    const sent = ['a', 'b', 'c'].map((body) => send(connections, body))
    await upstream.arrived(1)
    sent[1]?.end()
    open()
    await upstream.arrived(2)
    open()
    expect(await outcomesOf(sent)).toEqual(['a', 'unsent', 'c'])
    expect(upstream.seen.map(({ body }) => body)).toEqual(['a', 'c'])
  })

  it('replaces a lost connection, so that the next request is sent', async () => {
    const upstream = await startUpstream(({ body }, response) => {
      if (body === 'reset') response.socket?.resetAndDestroy()
      else if (body === 'last') response.setHeader('Connection', 'close').end(body)
      else response.end(body)
    })
    const connections = connect(upstream.url, 1)
    const sent = ['a', 'reset', 'b', 'last', 'c'].map((body) => send(connections, body))
    expect(await outcomesOf(sent)).toEqual(['a', 'lost', 'b', 'last', 'c'])
    expect(upstream.connections()).toBe(3)
  })

  it('sends the next request after a request was cancelled', async () => {
    const upstream = await startUpstream(({ body }, response) => {
      if (body !== 'stuck') response.end(body)
    })
    const connections = connect(upstream.url, 1)
    const sent = ['stuck', 'a'].map((body) => send(connections, body))
    await upstream.arrived(1)
    sent[0]?.end()
    expect(await outcomesOf(sent)).toEqual(['lost', 'a'])
  })

  it('reports each of thousands of requests as unsent if no server listens', async () => {
    const upstream = await startUpstream()
    await upstream.close()
    const connections = connect(upstream.url, 2)
    const sent = Array.from({ length: 5_000 }, (_, index) => send(connections, String(index)))
    expect(new Set(await outcomesOf(sent))).toEqual(new Set(['unsent']))
  })

  it('reports each of thousands of invalid requests as unsent', async () => {
    const { answer, open } = gate()
    const upstream = await startUpstream(answer)
    const connections = connect(upstream.url, 1)
    const first = send(connections, 'a')
    await upstream.arrived(1)
    const sent = Array.from({ length: 20_000 }, () => send(connections, 'b', ['accept', 'a\nb']))
    open()
    expect(await first.outcome).toBe('a')
    expect(new Set(await outcomesOf(sent))).toEqual(new Set(['unsent']))
  })

  it('accepts no more requests once it is closed, and closes its connections after the queued requests', async () => {
    const { answer, open } = gate()
    const upstream = await startUpstream(answer)
    const connections = connect(upstream.url, 1)
    const sent = ['a', 'b'].map((body) => send(connections, body))
    await upstream.arrived(1)
    const closing = connections.close()
    const late = send(connections, 'late')
    open()
    await upstream.arrived(2)
    open()
    await closing
    expect(await outcomesOf([...sent, late])).toEqual(['a', 'b', 'unsent'])
  })
})
