import { once } from 'node:events'

import { describe, expect, it } from 'vitest'

import { batchOf, batchText, flatRecords } from '../support/batch-request.ts'
import { RawClient, requestText } from '../support/raw-client.ts'
import { holdAnswers, startUpstream } from '../support/scripted-upstream.ts'
import { startAdapter, startWithV3 } from '../support/start-adapter.ts'

const drained = { listen: { port: 0, drainMs: 150 } }

describe('closing the adapter', () => {
  it('waits drainMs before it disconnects a client that does not read, and logs the number of disconnected clients', async () => {
    const block = Buffer.alloc(1_000_000, 'x')
    const upstream = await startUpstream(async (_seen, response) => {
      while (!response.destroyed) if (!response.write(block)) await Promise.race([once(response, 'drain'), once(response, 'close')])
    }) // prettier-ignore
    const adapter = await startAdapter(upstream.url, drained)
    const client = await RawClient.open(adapter.port)
    client.socket.pause()
    client.send(requestText('GET /V3/LearnerPersonals'))
    await upstream.arrived(1)
    const startedMs = performance.now()
    await adapter.app.close()
    expect(performance.now() - startedMs).toBeGreaterThan(140)
    expect(adapter.events().slice(1)).toEqual([
      { msg: 'connections closed before their replies were read', requests: 1 },
      expect.objectContaining({ msg: 'passed through' }),
      { msg: 'stopped' },
    ])
  })

  it('posts every record of a batch in progress even if drainMs has passed', async () => {
    const { answer, release } = holdAnswers()
    const { upstream, adapter } = await startWithV3(answer, drained)
    const batch = batchOf(flatRecords(20))
    const client = await RawClient.open(adapter.port, batchText(batch))
    await upstream.arrived(1)
    const closed = adapter.app.close()
    expect(await client.untilClosed()).toBe('')
    release()
    await closed
    expect(upstream.seen.length).toBe(20)
    expect(adapter.events().slice(1)).toEqual([
      { msg: 'connections closed before their replies were read', requests: 1 },
      expect.objectContaining({ msg: 'batch answered', accepted: 20 }),
      { msg: 'stopped' },
    ])
  })

  it('does not wait if no request is in progress', async () => {
    const adapter = await startAdapter('http://127.0.0.1:1', { listen: { port: 0, drainMs: 60_000 } })
    const idle = await RawClient.open(adapter.port)
    await adapter.app.close()
    await idle.untilClosed()
    expect(adapter.events().slice(1)).toEqual([{ msg: 'stopped' }])
  })
})
