import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'

import fc from 'fast-check'
import { describe, expect, it, onTestFinished } from 'vitest'

import { createBatchReply } from '../../src/proxy/reply-stream.ts'
import { plannedRecord } from '../writes/planned-record.ts'
import { createBatchEncoder, type PartReply } from '../../src/v2/index.ts'
import { readBatchReply } from '../support/batch-request.ts'
import { RawClient } from '../support/raw-client.ts'

const part = (n: number): PartReply => ({
  contentId: String(n),
  contentIdInHttp: false,
  changeset: undefined,
  status: 201,
  json: `[${n}]`,
})

/** Opens a client that waits for the reply to a number of records. Returns the client, the HTTP response and the batch reply. */
async function openReply(records: number) {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const client = await RawClient.open((server.address() as AddressInfo).port)
  client.send('GET / HTTP/1.0\r\nHost: x\r\n\r\n') // HTTP/1.0, so that the reply is not chunked.
  const [, response] = (await once(server, 'request')) as [unknown, ServerResponse]
  const reply = createBatchReply(
    response,
    createBatchEncoder('flat', () => crypto.randomUUID()),
    { records: Array.from({ length: records }, (_, n) => plannedRecord(n)), changesets: 0 },
    () => undefined,
  )
  return { client, response, reply }
}

function readReply(text: string): string[] {
  const [head = '', ...rest] = text.split('\r\n\r\n')
  const contentType = /^content-type: (.*)$/im.exec(head)?.[1]
  const parts = readBatchReply({ headers: { 'content-type': contentType }, text: rest.join('\r\n\r\n') })
  return parts.map(({ contentId, json }) => `${contentId ?? ''} ${JSON.stringify(json)}`)
}

describe('createBatchReply', () => {
  it('writes the parts in request order even if they are settled in another order (batch-wire A3)', async () => {
    const orders = fc.integer({ min: 0, max: 8 }).chain((count) => {
      const all = Array.from({ length: count }, (_, index) => index)
      return fc.shuffledSubarray(all, { minLength: count, maxLength: count })
    })
    await fc.assert(
      fc.asyncProperty(orders, fc.nat(8), async (order, begin) => {
        const { client, reply } = await openReply(order.length)
        for (const [step, index] of order.entries()) {
          if (step === begin) reply.begin()
          reply.setPart(index, part(index))
          if (step % 2 === 0) await turn()
        }
        await reply.end()
        const expected = order.map((_, index) => `${index} [${index}]`)
        expect(readReply(await client.untilClosed())).toEqual(expected)
      }),
      { numRuns: 40 },
    )
  })

  it('sends nothing before begin() is called, so that an error can still replace the reply', async () => {
    const { client, response, reply } = await openReply(2)
    reply.setPart(0, part(0))
    for (let turns = 0; turns < 5; turns += 1) await turn()
    expect(response.headersSent).toBe(false)
    reply.begin()
    expect(await client.until('[0]')).not.toContain('[1]')
    reply.setPart(1, part(1))
    await reply.end()
    expect(await client.untilClosed()).toContain('[1]')
  })

  it('encodes parts only as fast as the client reads, and sends all parts', async () => {
    const records = 2_000
    const { client, response, reply } = await openReply(records)
    client.socket.pause()
    reply.begin()
    for (let n = 0; n < records; n += 1) reply.setPart(n, { ...part(n), json: `["${'x'.repeat(10_000)}"]` })
    await reply.end()
    let most = 0
    for (let turns = 0; turns < 100; turns += 1) {
      await turn()
      most = Math.max(most, response.writableLength)
    }
    expect([response.writableEnded, most < 3_000_000]).toEqual([false, true])
    client.socket.resume()
    expect(readReply(await client.untilClosed())).toHaveLength(records)
  })

  it('accepts further parts after the client has disconnected', async () => {
    const { client, response, reply } = await openReply(2)
    reply.begin()
    client.socket.destroy()
    await once(response, 'close')
    reply.setPart(0, part(0))
    await turn()
    reply.setPart(1, part(1))
    await reply.end()
    expect(response.headersSent).toBe(false)
  })
})
