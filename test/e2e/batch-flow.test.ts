import { setImmediate as turn } from 'node:timers/promises'

import { describe, expect, it } from 'vitest'

import {
  batchOf,
  batchText,
  flatRecord,
  flatRecords,
  postBatch,
  postRecords,
  statusesOf,
} from '../support/batch-request.ts'
import { RawClient } from '../support/raw-client.ts'
import { echoOf, echoRecord, holdAnswers, startUpstream } from '../support/scripted-upstream.ts'
import { onePartner, startAdapter, startWithV3 } from '../support/start-adapter.ts'

const sendRaw = (port: number, records: readonly object[]): Promise<RawClient> =>
  RawClient.open(port, batchText(batchOf(records)))

/** Starts an adapter that sends two records at a time to an upstream that holds every answer until the test releases it. */
async function startHeld() {
  const { answer, release, held } = holdAnswers()
  const { upstream, adapter } = await startWithV3(answer, onePartner({ v3: { concurrency: 2 } }))
  return { upstream, adapter, release, held }
}

describe('the adapter, while it posts the records of a batch', () => {
  it('posts the records of one learner and event one after another, and other records concurrently', async () => {
    const running = new Map<string, number>()
    const order: string[] = []
    let most = 0
    const upstream = await startUpstream(async (seen, response) => {
      const key = seen.body
        .slice(seen.body.indexOf('"Attendee"'), seen.body.indexOf('"AttendanceCode"'))
        .toLowerCase()
      running.set(key, (running.get(key) ?? 0) + 1)
      most = Math.max(
        most,
        [...running.values()].reduce((sum, count) => sum + count, 0),
      )
      expect(running.get(key)).toBe(1)
      order.push(/"Comment":"([^"]*)"/.exec(seen.body)?.[1] ?? '')
      await upstream.arrived(5) // Holds the first five records until all five have arrived.
      running.set(key, 0)
      response.end(echoOf(seen))
    })
    const adapter = await startAdapter(upstream.url, onePartner({ v3: { concurrency: 5 } }))
    // 40 records of 10 learners. The GUID of each learner occurs in upper and lower case.
    const records = Array.from({ length: 40 }, (_, index) => {
      const learner = `abcdefab-0000-4000-8000-00000000000${index % 10}`
      return flatRecord(1, {
        Learner: index % 20 < 10 ? learner : learner.toUpperCase(),
        Comment: String(index),
      })
    })
    const parts = await postRecords(adapter, records)
    expect(parts.map(({ json }) => (json as { Comment: string }).Comment)).toEqual(
      records.map((_, index) => String(index)),
    )
    expect(order.length).toBe(40)
    for (let learner = 0; learner < 10; learner += 1) {
      const own = order.filter((comment) => Number(comment) % 10 === learner)
      expect(own).toEqual([0, 10, 20, 30].map((step) => String(step + learner)))
    }
    expect(most).toBe(5)
  })

  it('opens no more connections than configured, however large the batches are', async () => {
    const { answer, release, held } = holdAnswers()
    const { upstream, adapter } = await startWithV3(answer, { v3: { connections: 3 } })
    const replies = [1, 2].map(() => postBatch(adapter, batchOf(flatRecords(20))))
    await upstream.arrived(3)
    expect(held()).toBe(3)
    release()
    for (const reply of await Promise.all(replies)) {
      expect(statusesOf(reply)).toEqual(Array(20).fill(201))
    }
    expect([upstream.seen.length, upstream.connections()]).toEqual([40, 3])
  })

  it('sends the first parts of the reply while V3 still holds later records (batch-wire A7)', async () => {
    const { upstream, adapter, release, held } = await startHeld()
    const client = await sendRaw(adapter.port, flatRecords(6))
    await upstream.arrived(2)
    expect(client.text).toBe('') // The adapter sends the status of the reply only once it has the first outcome.
    release(1)
    expect(await client.until(/Content-ID: 1[^]*"AttendanceHistorys":\[\]\}/)).not.toContain('Content-ID: 2')
    await upstream.arrived(3)
    release(1)
    await client.until(/Content-ID: 2[^]*"AttendanceHistorys":\[\]\}/)
    expect(held()).toBeLessThanOrEqual(2)
    release()
    expect(await client.until('--\r\n\r\n0\r\n\r\n')).toContain('Content-ID: 6')
  })

  it('posts every record even if the client disconnects before the reply is complete', async () => {
    const { upstream, adapter, release } = await startHeld()
    const client = await sendRaw(adapter.port, flatRecords(30))
    await upstream.arrived(2)
    release(1)
    await client.until('Content-ID: 1')
    client.socket.resetAndDestroy()
    release()
    await upstream.arrived(30)
    await adapter.app.close()
    expect(adapter.events().find(({ msg }) => msg === 'batch answered')).toMatchObject({ accepted: 30 })
  })
})

describe('closing the adapter', () => {
  it('finishes a batch in progress and refuses new connections', async () => {
    const { upstream, adapter, release } = await startHeld()
    const client = await sendRaw(adapter.port, flatRecords(9))
    await upstream.arrived(2)
    const closed = adapter.app.close()
    await expect(RawClient.open(adapter.port)).rejects.toThrow(/ECONNREFUSED/)
    release()
    expect(await client.untilClosed()).toMatch(/Content-ID: 9[^]*--\r\n\r\n0\r\n\r\n$/)
    await closed
    expect(upstream.seen.length).toBe(9)
    expect(adapter.events().at(-1)).toEqual({ msg: 'stopped' })
  })

  it('does not cut off a reply that a slow client is still reading', async () => {
    const { upstream, adapter } = await startWithV3(echoRecord, onePartner({ v3: { concurrency: 64 } }))
    const records = Array.from({ length: 400 }, (_, n) => flatRecord(n + 1, { Comment: 'x'.repeat(30_000) }))
    const client = await sendRaw(adapter.port, records)
    await client.until('HTTP/1.1 200 OK')
    client.socket.pause()
    await upstream.arrived(400)
    while (!adapter.log.some((line) => line.includes('batch answered'))) await turn()
    const closed = adapter.app.close()
    for (let turns = 0; turns < 20; turns += 1) await turn()
    client.socket.resume()
    expect((await client.untilClosed()).endsWith('--\r\n\r\n0\r\n\r\n')).toBe(true)
    await closed
  })

  it('completes even if a client continues to send requests on an open connection', async () => {
    const { adapter } = await startWithV3()
    const idle = await RawClient.open(adapter.port)
    const asking = await RawClient.open(adapter.port)
    const request = 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n'
    asking.socket.on('data', () => {
      if (asking.socket.writable) asking.send(request)
    })
    asking.send(request)
    await asking.until('HTTP/1.1 200')
    await adapter.app.close()
    await Promise.all([idle.untilClosed(), asking.untilClosed()])
  })
})
