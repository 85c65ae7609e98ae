import { describe, expect, it } from 'vitest'

import { exchange, RawClient, requestText } from '../support/raw-client.ts'
import { type Answer, replyWith, startRawUpstream, startUpstream } from '../support/scripted-upstream.ts'
import { startRelay } from './start-relay.ts'

const close = 'Connection: close\r\n'
const sandboxFields = 'Ocp-Apim-Subscription-Key: sandbox\r\nAuthorization: Bearer sandbox\r\n'
const ask = (start: string, lines = '', body = ''): string =>
  `${start} HTTP/1.1\r\nHost: adapter.test\r\n${sandboxFields}${close}${lines}\r\n${body}`

describe('what goes over the relay', () => {
  it('is streamed both ways, chunked bodies too', async () => {
    const upstream = await startRawUpstream((request, response) => request.pipe(response))
    const relay = await startRelay(upstream.url)
    const client = await RawClient.open(relay.port)
    client.send(requestText('POST /V2/x', 'Transfer-Encoding: chunked\r\n', '3\r\nabc\r\n'))
    await client.until('abc')
    client.send('3\r\ndef\r\n0\r\n\r\n')
    expect(await client.until('\r\n0\r\n\r\n')).toContain('def')
  })

  it('ends at V2 when the client goes away', async () => {
    const gone = Promise.withResolvers<undefined>()
    const upstream = await startUpstream((_seen, response) => {
      response.write('first')
      response.once('close', () => gone.resolve(undefined))
    })
    const relay = await startRelay(upstream.url)
    const client = await RawClient.open(relay.port)
    client.send(requestText('GET /V2/x'))
    await client.until('first')
    client.socket.destroy()
    await gone.promise
  })
})

describe('V2 that fails', () => {
  it('to take a connection is an outage, for a write too', async () => {
    const relay = await startRelay('http://127.0.0.1:1')
    for (const method of ['GET', 'POST']) {
      const reply = await exchange(relay.port, ask(`${method} /V2/x`))
      expect(reply).toMatch(/^HTTP\/1\.1 503 [^]*ADP_UPSTREAM_UNAVAILABLE/)
    }
  })

  const lost: [name: string, answer: Answer][] = [
    ['a reset', (_seen, response) => void response.socket?.resetAndDestroy()],
    ['no answer in time', () => undefined],
    ['no HTTP', (_seen, response) => void response.socket?.end('SSH-2.0-odd\r\n\r\n')],
    ['a bad status line', (_seen, response) => void response.socket?.end('HTTP/1.1 099 Odd\r\nContent-Length: 0\r\n\r\n')],
    ['an upgrade that was not asked for', (_seen, response) => void response.socket?.end('HTTP/1.1 101 X\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n')],
  ] // prettier-ignore
  it.each(lost)('after a write has left makes its outcome unknown: %s', async (_name, answer) => {
    const upstream = await startUpstream(answer)
    const relay = await startRelay(upstream.url)
    expect(await exchange(relay.port, ask('GET /V2/x'))).toMatch(
      /^HTTP\/1\.1 503 [^]*ADP_UPSTREAM_UNAVAILABLE/,
    )
    const patch = ask('PATCH /V2/x', 'Content-Length: 2\r\n', '{}')
    expect(await exchange(relay.port, patch)).toMatch(/^HTTP\/1\.1 504 [^]*ADP_V2_OUTCOME_UNKNOWN/)
    expect(upstream.seen.length).toBe(2)
  })

  it('by dripping interim responses waits no longer than the time for the status line', async () => {
    const upstream = await startUpstream((_seen, response) => {
      const timer = setInterval(() => response.socket?.write('HTTP/1.1 103 Early Hints\r\n\r\n'), 20)
      response.once('close', () => clearInterval(timer))
    })
    const relay = await startRelay(upstream.url)
    expect(await exchange(relay.port, ask('GET /V2/x'))).toMatch(/^HTTP\/1\.1 503 /)
  })
})

it('leaves nothing behind for the next request on a connection', async () => {
  const upstream = await startUpstream(replyWith(200, 'ok', { 'Content-Type': 'text/plain' }))
  const relay = await startRelay(upstream.url)
  const raw = await RawClient.open(relay.port)
  const hidden = 'GET /V2/hidden HTTP/1.1\r\nHost: x\r\n\r\n'
  raw.send(
    requestText('GET /V2/x', `Content-Length: ${hidden.length}\r\nConnection: content-length\r\n`, hidden),
  )
  await raw.until('ok')
  raw.send(requestText('GET /V2/y'))
  await raw.until(/ok[^]*ok/)
  expect(upstream.seen.map(({ url }) => url)).toEqual(['/V2/x', '/V2/y'])
})
