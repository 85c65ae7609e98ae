import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { setImmediate as turn } from 'node:timers/promises'

import { describe, expect, it } from 'vitest'

import { RawClient, requestText } from '../support/raw-client.ts'
import { startRawUpstream } from '../support/scripted-upstream.ts'
import { startAdapter, startWithV3 } from '../support/start-adapter.ts'

describe('the adapter, when it passes a request through', () => {
  it.each([
    ['after the first bytes of the reply', true, 200],
    ['before the reply', false, 499],
  ])('ends the request to V3 when the client disconnects %s', async (_when, begins, status) => {
    const gone = Promise.withResolvers<undefined>()
    const { upstream, adapter } = await startWithV3((_seen, response) => {
      if (begins) response.write('first')
      response.on('close', () => gone.resolve(undefined))
    })
    const client = await RawClient.open(adapter.port, requestText('GET /V3/x'))
    await (begins ? client.until('first') : upstream.arrived(1))
    client.socket.resetAndDestroy()
    await gone.promise
    await adapter.app.close()
    expect(adapter.events().slice(1)).toEqual([
      expect.objectContaining({ msg: 'passed through', status }),
      { msg: 'stopped' },
    ])
  })

  /** Resolves with the count once the count has not changed for 300 turns of the event loop. */
  async function settled(count: () => number): Promise<number> {
    let last = -1
    for (let still = 0; still < 300; still += 1) {
      if (count() !== last) still = 0
      last = count()
      await turn()
    }
    return last
  }
  const size = 100_000_000
  const block = Buffer.alloc(1_000_000, 'x')

  it.each(['application/json', 'text/plain'])(
    'passes on a long reply (%s) as fast as the client reads it',
    async (type) => {
      let sent = 0
      const { upstream, adapter } = await startWithV3(async (_seen, response) => {
        response.writeHead(200, { 'Content-Type': type })
        for (; sent < size; sent += block.length) if (!response.write(block)) await once(response, 'drain')
        response.end()
      })
      const client = await RawClient.open(adapter.port)
      client.socket.removeAllListeners('data').pause()
      let received = 0
      client.send(requestText('GET /V3/x', 'Connection: close\r\n'))
      await upstream.arrived(1)
      expect(await settled(() => sent)).toBeLessThan(size / 2)
      client.socket.on('data', (chunk: Buffer) => (received += chunk.length)).resume()
      await client.untilClosed()
      expect(received).toBeGreaterThan(size)
    },
  )

  it('passes on a long request as fast as V3 reads it', async () => {
    const calls: (readonly [IncomingMessage, ServerResponse])[] = []
    const upstream = await startRawUpstream((...call) => calls.push([call[0], call[1]]))
    const adapter = await startAdapter(upstream.url)
    const client = await RawClient.open(adapter.port)
    client.send(requestText('POST /V3/AttendanceRecords', `Content-Length: ${size}\r\n`))
    let sent = 0
    const sending = (async () => {
      for (; sent < size; sent += block.length)
        if (!client.socket.write(block)) await once(client.socket, 'drain')
    })()
    expect(await settled(() => sent)).toBeLessThan(size / 2)
    let received = 0
    const [request, response] = calls[0] ?? []
    request?.on('data', (chunk: Buffer) => (received += chunk.length))
    await sending
    expect(await settled(() => received)).toBe(size)
    // Answers the request, because the adapter waits for it before it stops.
    response?.end()
    await client.until('HTTP/1.1 200 OK')
  })
})
