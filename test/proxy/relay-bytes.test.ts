import { describe, expect, it } from 'vitest'

import { exchange, RawClient, requestText } from '../support/raw-client.ts'
import { replyWithBytes, startRawUpstream } from '../support/raw-upstream.ts'
import { startRawUpstream as startRawMessages } from '../support/scripted-upstream.ts'
import { startRelay } from './start-relay.ts'

const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
const close = 'Connection: close\r\n'
const ask = (start: string, lines = '', body = ''): string =>
  `${start} HTTP/1.1\r\nHost: adapter.test\r\n${close}${lines}\r\n${body}`
const own = /^(?:Connection|Keep-Alive): .*\r\n/gim

/** Splits a request that V2 received into its request line, its fields without Host, Connection and X-Forwarded-*, and its body. */
function parts(seen = '') {
  const [head = '', ...body] = seen.split('\r\n\r\n')
  const [start, ...lines] = head.split('\r\n')
  const fields = lines.filter((line) => !/^(?:host|connection|x-forwarded-.*):/i.test(line))
  return { start, fields, body: body.join('\r\n\r\n') }
}

describe('a request that the relay sends to V2', () => {
  const own = 'Authorization: bearer t\r\nOcp-Apim-Subscription-Key: k\r\n'
  it.each([
    ['names, order and repetition of fields', 'GET /V2/x', 'X-B: 1\r\nX-B: 3\r\nx-a: 2\r\n', '', ['X-B: 1', 'X-B: 3', 'x-a: 2']],
    ['the position of each value of a repeated field', 'GET /V2/x', 'X-B: 1\r\nx-a: 2\r\nx-b: 3\r\n', '', ['X-B: 1', 'x-a: 2', 'x-b: 3']],
    ['each value of a repeated field next to a body', 'PUT /V2/x', 'X-B: 1\r\na: 2\r\nx-b: 3\r\nContent-Length: 1\r\n', 'x', ['X-B: 1', 'X-B: 3', 'a: 2', 'Content-Length: 1']],
    ['a body with a length', 'PUT /V2/x', 'a: 1\r\nContent-Length: 3\r\n', 'a\r\n', ['a: 1', 'Content-Length: 3']],
    ['a length of 0', 'POST /V2/x', 'Content-Length: 0\r\n', '', ['content-length: 0']],
    ['a GET with a body', 'GET /V2/x', 'Content-Length: 2\r\n', 'ab', ['Content-Length: 2']],
  ])('reaches V2 unchanged: %s', async (_name, start, lines, body, fields) => {
    const upstream = await startRawUpstream(replyWithBytes(ok))
    const relay = await startRelay(upstream.url)
    expect(await exchange(relay.port, ask(start, lines, body))).toMatch(/^HTTP\/1\.1 200 OK/)
    expect(parts(upstream.seen[0])).toEqual({ start: `${start} HTTP/1.1`, fields, body })
  }) // prettier-ignore

  it.each([
    ['hop-by-hop fields', 'Keep-Alive: 1\r\nProxy-Authorization: x\r\nProxy-Connection: x\r\nUpgrade: websocket\r\nTE: trailers\r\nTrailer: x\r\n', []],
    ['fields that Connection names', 'Connection: X-Hop, x-two\r\nX-Hop: 1\r\nX-Two: 2\r\nx-three: 3\r\n', ['x-three: 3']],
    ['any loss of credentials, even if Connection names them', `Connection: authorization, ocp-apim-subscription-key\r\n${own}`, own.trim().split('\r\n')],
    ['an expectation that the adapter answered', 'Expect: 100-continue\r\n', []],
    ['fields that override the method or path', 'X-HTTP-Method-Override: DELETE\r\nX-Original-URL: /admin\r\nX-Rewrite-Url: /admin\r\n', []],
    ['claims about the route of the request', 'X-Forwarded-For: 1.2.3.4\r\nforwarded: for=1.2.3.4\r\nVia: 1.1 x\r\nX_Real_IP: 1.2.3.4\r\n', []],
  ])('reaches V2 without %s', async (_name, lines, kept) => {
    const upstream = await startRawUpstream(replyWithBytes(ok))
    const relay = await startRelay(upstream.url)
    await exchange(relay.port, ask('GET /V2/x', lines))
    expect(parts(upstream.seen[0]).fields).toEqual(kept)
    expect(upstream.seen[0]?.match(/^x-forwarded-.*|^forwarded.*|^via.*|^x_real.*/gim)).toEqual([
      'x-forwarded-for: 127.0.0.1',
      'x-forwarded-proto: http',
      'x-forwarded-host: adapter.test',
      'x-forwarded-port: 80',
    ])
  }) // prettier-ignore

  it('is not sent if its length differs from the length of the body that was read', async () => {
    const upstream = await startRawUpstream(replyWithBytes(ok))
    const relay = await startRelay(upstream.url, { call: { body: Buffer.from('too long') } })
    expect(await exchange(relay.port, ask('POST /V2/x', 'Content-Length: 2\r\n', 'ab'))).toMatch(/ 503 /)
    expect(upstream.seen.join('')).toBe('')
  })

  it('is streamed completely if its body is large', async () => {
    const body = 'x'.repeat(3_000_000)
    const upstream = await startRawUpstream((socket, seen) => {
      if (seen.length >= body.length && seen.endsWith('x!')) socket.write(ok)
    })
    const relay = await startRelay(upstream.url, { timeoutMs: 5_000 })
    const request = ask('POST /V2/x', `Content-Length: ${body.length + 1}\r\n`, `${body}!`)
    expect(await exchange(relay.port, request)).toMatch(/^HTTP\/1\.1 200 OK/)
    expect(upstream.seen[0]?.split('\r\n\r\n')[1]).toBe(`${body}!`)
  })
})

it('the relay streams a request to V2 and its reply, including chunked bodies', async () => {
  const upstream = await startRawMessages((request, response) => request.pipe(response))
  const relay = await startRelay(upstream.url)
  const chunks = requestText('POST /V2/x', 'Transfer-Encoding: chunked\r\n', '3\r\nabc\r\n')
  const client = await RawClient.open(relay.port, chunks)
  await client.until('abc')
  client.send('3\r\ndef\r\n0\r\n\r\n')
  expect(await client.until('\r\n0\r\n\r\n')).toContain('def')
})

describe('a reply of V2 through the relay', () => {
  it.each([
    ['keeps names, order and repetition of fields', 'GET', 'HTTP/1.1 299 My Own\r\nX-B: 1\r\nset-cookie: a\r\nx-a: 2\r\nSet-Cookie: b\r\nX-B: \u00ff\r\nContent-Length: 2\r\nDate: then\r\n\r\nok', undefined],
    ['keeps an empty reason and adds no date', 'GET', 'HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n', undefined],
    ['keeps chunks', 'GET', 'HTTP/1.1 200 OK\r\nx: 1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n', undefined],
    ['does not contain an interim response', 'GET', 'HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'],
    ['keeps the fields of a reply to HEAD', 'HEAD', 'HTTP/1.1 200 OK\r\nContent-Length: 99\r\nETag: x\r\n\r\n', undefined],
    ['keeps a 204', 'DELETE', 'HTTP/1.1 204 No Content\r\nETag: x\r\n\r\n', undefined],
    ['keeps a 304', 'GET', 'HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\nETag: x\r\n\r\n', undefined],
    ['does not contain hop-by-hop fields', 'GET', 'HTTP/1.1 200 OK\r\nConnection: X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=9\r\nUpgrade: h2c\r\nProxy-Authenticate: x\r\nContent-Length: 0\r\n\r\n', 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'],
    ['keeps forwarding fields, which are harmless in a reply', 'GET', 'HTTP/1.1 200 OK\r\nVia: 1.1 v2\r\nX-Forwarded-For: a\r\nContent-Length: 0\r\n\r\n', undefined],
    ['keeps a compressed body', 'GET', 'HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Type: application/json\r\nContent-Length: 3\r\n\r\n\u001f\u008b\u0000', undefined],
    ['keeps an error', 'POST', 'HTTP/1.1 400 Bad\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}', undefined],
    ['becomes chunked if V2 ends the body by closing the connection', 'GET', 'HTTP/1.1 200 OK\r\nx: 1\r\n\r\nok', 'HTTP/1.1 200 OK\r\nx: 1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n'],
  ])('%s', async (name, method, reply, expected) => {
    const upstream = await startRawUpstream(replyWithBytes(reply, name.startsWith('becomes')))
    const relay = await startRelay(upstream.url)
    const lines = method === 'POST' ? 'Content-Length: 0\r\n' : ''
    const got = await exchange(relay.port, ask(`${method} /V2/x`, lines))
    expect(got.replace(own, '')).toBe(expected ?? reply)
    expect(await relay.outcome()).toMatchObject({ kind: 'answered' })
  }) // prettier-ignore

  it('has neither chunks nor trailers if the client uses HTTP/1.0', async () => {
    const reply =
      'HTTP/1.1 200 OK\r\nTrailer: x\r\nTransfer-Encoding: chunked\r\na: 1\r\n\r\n2\r\nok\r\n0\r\nx: 1\r\n\r\n'
    const upstream = await startRawUpstream(replyWithBytes(reply))
    const relay = await startRelay(upstream.url)
    const got = await exchange(relay.port, 'GET /V2/x HTTP/1.0\r\n\r\n')
    expect(got.replace(own, '')).toBe('HTTP/1.1 200 OK\r\na: 1\r\n\r\nok')
  })

  it('reaches the client with its head before the body has arrived', async () => {
    const upstream = await startRawUpstream(replyWithBytes('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n'))
    const relay = await startRelay(upstream.url)
    const client = await RawClient.open(relay.port, requestText('GET /V2/x'))
    expect(await client.until('\r\n\r\n')).toContain('Content-Length: 2')
  })

  it('does not become a tunnel if the client requests an upgrade', async () => {
    const upstream = await startRawUpstream(replyWithBytes(ok))
    const relay = await startRelay(upstream.url)
    const lines = 'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n'
    const client = await RawClient.open(relay.port, `GET /V2/x HTTP/1.1\r\nHost: a\r\n${lines}\r\n`)
    expect(await client.until('ok')).toMatch(/^HTTP\/1\.1 200 OK/)
    expect(upstream.seen[0]).not.toMatch(/upgrade/i)
  })

  it('leaves the connection to V2 open for the next request', async () => {
    const upstream = await startRawUpstream(replyWithBytes(ok))
    const relay = await startRelay(upstream.url)
    const client = await RawClient.open(relay.port)
    for (let count = 1; count <= 3; count += 1) {
      client.send(requestText('GET /V2/x'))
      await client.until(new RegExp(`(?:ok[^]*){${count}}`))
    }
    expect(upstream.seen.length).toBe(1)
  })
})
