import { expect, it } from 'vitest'

import { RawClient, requestText } from '../support/raw-client.ts'
import { startRawUpstream } from '../support/scripted-upstream.ts'
import { startAdapter } from '../support/start-adapter.ts'

const overrides = { slowClients: { uploadMs: 300, minBytesPerSecond: 100 } }

it.each([
  ['a method that is not served', 'v3', 'POST /nothing', /^HTTP\/1\.1 405 /],
  ['a body that cannot be read', 'v3', 'POST /V2/Attendance/$batch', /^HTTP\/1\.1 400 /],
  ['a request that V2 refuses because of its head', 'legacy', 'GET /V2/Other', /^HTTP\/1\.1 401 /],
] as const)(
  'the adapter closes the connection of an upload that stalls after the answer to %s',
  async (_name, stage, start, reply) => {
    const v2 = await startRawUpstream((_request, response) => void response.writeHead(401).end('{}'))
    const partners = [{ id: 'acme', match: { any: true }, stage }]
    const adapter = await startAdapter(v2.url, { v2: { baseUrl: v2.url }, partners }, overrides)
    const client = await RawClient.open(adapter.port)
    const fields = 'Content-Length: 100000\r\nContent-Encoding: gzip\r\n'
    client.send(requestText(start, fields, 'x'.repeat(1_000)))
    expect(await client.untilClosed()).toMatch(reply)
  },
)

it('the adapter keeps the connection open if the upload ends in time after the answer', async () => {
  const v3 = await startRawUpstream((_request, response) => void response.end('{}'))
  const adapter = await startAdapter(v3.url, {}, overrides)
  const client = await RawClient.open(adapter.port, requestText('POST /nothing', 'Content-Length: 5\r\n'))
  await client.until('ADP_METHOD_NOT_ALLOWED')
  client.send(`later${requestText('GET /healthz', 'Connection: close\r\n')}`)
  expect(await client.untilClosed()).toContain('"status":"ok"')
})

it.each([
  ['after a part of it was forwarded', 200_000, [504, 'ADP_OUTCOME_UNKNOWN']],
  ['before any of it was forwarded', 10, [400, 'The request is not valid HTTP.']],
] as const)(
  'the adapter sends exactly one reply to a write whose body breaks off %s',
  async (_name, length, [status, text]) => {
    const v3 = await startRawUpstream((request) => request.on('error', () => undefined).resume())
    const adapter = await startAdapter(v3.url)
    const chunk = `${length.toString(16)}\r\n${'x'.repeat(length)}\r\n`
    const client = await RawClient.open(adapter.port, requestText('PATCH /V3/LearnerPersonals', 'Transfer-Encoding: chunked\r\n', chunk)) // prettier-ignore
    await expect.poll(() => v3.connections()).toBe(length > 65_536 ? 1 : 0)
    client.send('no chunk\r\n')
    const reply = await client.untilClosed()
    expect([...reply.matchAll(/^HTTP\/1\.1 (\d{3})/gm)].map(([, one]) => Number(one))).toEqual([status])
    expect(reply).toContain(text)
  },
)
