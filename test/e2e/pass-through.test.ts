import { describe, expect, it } from 'vitest'

import { Secret } from '../../src/config/index.ts'
import { flatRecord, postRecords } from '../support/batch-request.ts'
import { exchange, RawClient, requestText } from '../support/raw-client.ts'
import { type Answer, replyWith, startUpstream } from '../support/scripted-upstream.ts'
import { codeOf, onePartner, startAdapter, startWithV3 } from '../support/start-adapter.ts'

function raw(text: string): Answer {
  return (_seen, response) => {
    response.socket?.end(Buffer.from(text, 'latin1'))
  }
}

/** Splits a reply into its head, without the fields Date, Connection and Keep-Alive, and its body. */
function split(reply: string): { head: string[]; body: string } {
  const at = reply.indexOf('\r\n\r\n')
  const head = reply.slice(0, at).split('\r\n')
  return {
    head: head.filter((line) => !/^(Date|Connection|Keep-Alive):/i.test(line)),
    body: reply.slice(at + 4),
  }
}

describe('the reply to a passed-through request', () => {
  const noRewriting = { passThrough: { rewriteLinks: false } }
  const replies: [name: string, method: string, lines: string[], body: string][] = [
    ['binary bytes', 'GET', ['HTTP/1.1 200 OK', 'Content-Type: image/png', 'Content-Length: 5'], '\u0000\u00ff\r\n\u0080'],
    ['several cookies', 'GET', ['HTTP/1.1 200 Fine', 'Set-Cookie: a=1; Path=/', 'X-Odd: caf\u00e9', 'set-cookie: b=2', 'Content-Length: 0'], ''],
    ['an empty JSON object', 'GET', ['HTTP/1.1 200 OK', 'Content-Type: application/json', 'Content-Length: 2'], '{}'],
    ['a 304', 'GET', ['HTTP/1.1 304 Not Modified', 'ETag: "x"', 'Content-Type: application/json'], ''],
    ['a 204', 'PATCH', ['HTTP/1.1 204 No Content', 'X-A: 1'], ''],
    ['an answer to HEAD', 'HEAD', ['HTTP/1.1 200 OK', 'Content-Type: text/plain', 'Content-Length: 77'], ''],
    ['a redirect', 'GET', ['HTTP/1.1 302 Found', 'Location: http://elsewhere.test/', 'Content-Length: 0'], ''],
    ['a refusal', 'GET', ['HTTP/1.1 403 Forbidden', 'Content-Type: application/json', 'Content-Length: 7'], '{"a":1}'],
    ['an error', 'GET', ['HTTP/1.1 500 Oh', 'Content-Length: 4'], 'oops'],
    ['an odd status', 'GET', ['HTTP/1.1 799 Own', 'Content-Length: 0'], ''],
    ['a gzip body', 'GET', ['HTTP/1.1 200 OK', 'Content-Type: application/json', 'Content-Encoding: gzip', 'Content-Length: 3'], '\u001f\u008b\u0008'],
  ] // prettier-ignore
  it.each(replies)('has the status, headers and bytes of V3 for %s', async (_name, method, lines, body) => {
    const upstream = await startUpstream(raw(`${lines.join('\r\n')}\r\nConnection: close\r\n\r\n${body}`))
    const adapter = await startAdapter(upstream.url, noRewriting)
    const reply = await exchange(
      adapter.port,
      requestText(`${method} /V3/LearnerPersonals`, 'Connection: close\r\n'),
    )
    expect(split(reply)).toEqual({ head: lines, body })
  })

  it('has no hop-by-hop header of V3, and no header that V3 names in Connection (RFC 9110 7.6.1)', async () => {
    const { adapter } = await startWithV3(
      raw(
        'HTTP/1.1 200 OK\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=9\r\nProxy-Authenticate: Basic\r\n' +
          'Upgrade: h2c\r\nTrailer: X-End\r\nX-End-To-End: 1\r\nContent-Length: 2\r\n\r\nok',
      ),
    )
    const reply = await exchange(adapter.port, requestText('GET /V1/x', 'Connection: close\r\n'))
    expect(split(reply)).toEqual({
      head: ['HTTP/1.1 200 OK', 'X-End-To-End: 1', 'Content-Length: 2'],
      body: 'ok',
    })
  })

  it("has the adapter's own framing when V3 names Content-Length in Connection", async () => {
    const { adapter } = await startWithV3(
      raw('HTTP/1.1 200 OK\r\nConnection: close, content-length\r\nContent-Length: 2\r\n\r\nok'),
    )
    const client = await RawClient.open(adapter.port, requestText('GET /V1/x'))
    expect(await client.until(/ok/)).toMatch(
      /Transfer-Encoding: chunked\r\n\r\n2\r\nok|Content-Length: 2\r\n\r\nok/i,
    )
  })

  it('breaks off when V3 stalls in the middle of a body', async () => {
    const upstream = await startUpstream((_seen, response) => {
      response.write('abc')
    })
    const adapter = await startAdapter(upstream.url, { v3: { timeouts: { headersMs: 500 } } })
    const client = await RawClient.open(adapter.port, requestText('GET /V3/x'))
    const reply = await client.untilClosed()
    expect(reply).toContain('abc')
    expect(reply).not.toContain('\r\n0\r\n\r\n')
  })

  it('contains links to the adapter instead of links to V3 if the body is JSON', async () => {
    const upstream = await startUpstream((seen, response) => {
      const base = `http://127.0.0.1:${upstream.port}/sims`
      const body = `{"@odata.context":"http://old.test/$metadata","value":["\u00e9${base}/x"],"@odata.nextLink":"${base}/V3/x?$skip=1"}`
      response.writeHead(200, {
        'Content-Type': 'application/json; odata.metadata=minimal',
        'Content-Length': Buffer.byteLength(body),
      })
      response.end(seen.method === 'HEAD' ? undefined : body)
    })
    const adapter = await startAdapter(`${upstream.url}/sims`)
    const reply = await adapter.request('GET', '/V3/x')
    expect(reply.text).toBe(
      `{"@odata.context":"http://old.test/$metadata","value":["\u00e9${upstream.url}/sims/x"],"@odata.nextLink":"${adapter.url}/V3/x?$skip=1"}`,
    )
    const head = await adapter.request('HEAD', '/V3/x')
    expect([head.status, head.text, head.headers['content-type']]).toEqual([
      200,
      '',
      'application/json; odata.metadata=minimal',
    ])
    const off = await startAdapter(`${upstream.url}/sims`, { passThrough: { rewriteLinks: false } })
    expect((await off.request('GET', '/V3/x')).text).toContain(
      `"@odata.nextLink":"${upstream.url}/sims/V3/x?$skip=1"`,
    )
  })

  it('is a 503 in JSON when V3 is down', async () => {
    const adapter = await startAdapter('http://127.0.0.1:1')
    for (const method of ['GET', 'PATCH'] as const) {
      const reply = await adapter.request(method, '/V3/LearnerPersonals')
      expect([reply.status, reply.headers['retry-after']]).toEqual([503, '5'])
      expect(JSON.parse(reply.text)).toMatchObject({ error: { code: 'ADP_UPSTREAM_UNAVAILABLE' } })
    }
  })

  it('is a 503 when V3 does not speak TLS', async () => {
    const upstream = await startUpstream()
    const adapter = await startAdapter(upstream.url.replace('http:', 'https:'))
    for (const method of ['GET', 'PATCH'] as const) {
      expect((await adapter.request(method, '/V3/LearnerPersonals')).status).toBe(503)
    }
    const parts = await postRecords(adapter, [flatRecord(1)])
    expect(parts.map(({ status }) => status)).toEqual([503])
    expect(upstream.seen).toEqual([])
  })

  const lost: [name: string, answer: Answer][] = [
    ['a reset', (_seen, response) => void response.socket?.resetAndDestroy()],
    ['no answer in time', () => undefined],
    ['bytes that are not HTTP', raw('SSH-2.0-odd\r\n\r\n')],
    ['a status below 100', raw('HTTP/1.1 099 Odd\r\nContent-Length: 0\r\n\r\n')],
    ['a control character in the status line', raw('HTTP/1.1 200 O\u0001K\r\nContent-Length: 0\r\n\r\n')],
    ['an upgrade that nobody asked for', raw('HTTP/1.1 101 X\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n')],
  ]
  it.each(lost)(
    'reports an unknown outcome, and never a plain failure, for a write after %s',
    async (_name, answer) => {
      const { upstream, adapter } = await startWithV3(answer, { v3: { timeouts: { headersMs: 500 } } })
      const read = await adapter.request('GET', '/V3/LearnerPersonals')
      expect(codeOf(read)).toBe('503 ADP_UPSTREAM_UNAVAILABLE')
      const write = await adapter.request('PATCH', '/V3/LearnerPersonals', { body: '{}' })
      expect(codeOf(write)).toBe('504 ADP_OUTCOME_UNKNOWN')
      expect(upstream.seen.length).toBe(2)
    },
  )

  it('reports an unknown outcome when a write is lost on a reused connection', async () => {
    const { upstream, adapter } = await startWithV3((seen, response) => {
      if (seen.index === 0) response.end('ok')
      else response.socket?.resetAndDestroy()
    })
    expect((await adapter.request('PATCH', '/V3/LearnerPersonals(1)')).status).toBe(200)
    expect((await adapter.request('PATCH', '/V3/LearnerPersonals(1)')).status).toBe(504)
    expect([upstream.seen.length, upstream.connections()]).toEqual([2, 1])
  })
})

describe('a passed-through request to V3', () => {
  it("has the partner's key, the host of V3 in Host, and only the adapter's own forwarding headers", async () => {
    const upstream = await startUpstream(replyWith(200))
    const adapter = await startAdapter(
      `${upstream.url}/base`,
      onePartner({ v3: { subscriptionKey: new Secret('v3-key') } }),
    )
    await exchange(
      adapter.port,
      requestText(
        "PATCH /Learner/V3/LearnerPersonals(1)?$filter=a%20eq%20'b'&x=%zz",
        'Content-Length: 3\r\nCookie: a=1\r\nX-Forwarded-For: client.test\r\nX-Many: 1\r\nX-Many: 2\r\nTE: trailers\r\nProxy-Authorization: x\r\nKeep-Alive: 1\r\n' +
          'Expect: 100-continue\r\nUpgrade: h2c\r\nConnection: close, X-Hop, Upgrade\r\nX-Hop: 1\r\n',
        'a=b',
      ),
    )
    const [seen] = upstream.seen
    expect(`${seen?.method} ${seen?.url} ${seen?.body}`).toBe(
      "PATCH /base/Learner/V3/LearnerPersonals(1)?$filter=a%20eq%20'b'&x=%zz a=b",
    )
    const { connection, 'x-forwarded-port': port, ...headers } = seen?.headers ?? {}
    expect(headers).toEqual({
      host: `127.0.0.1:${upstream.port}`,
      'ocp-apim-subscription-key': 'v3-key',
      authorization: 'bearer client-token',
      'accept-encoding': 'identity',
      'content-length': '3',
      cookie: 'a=1',
      'x-many': '1, 2',
      'x-forwarded-for': '127.0.0.1',
      'x-forwarded-proto': 'http',
      'x-forwarded-host': 'adapter.test',
    })
    expect([connection ?? 'keep-alive', typeof port]).toEqual(['keep-alive', 'string'])
  })

  it.each([
    ['POST', 'Content-Length: 5\r\n', 'hello'],
    ['GET', 'Content-Length: 5\r\n', 'hello'],
    ['DELETE', 'Content-Length: 5\r\n', 'hello'],
    ['POST', 'Transfer-Encoding: chunked\r\n', '5\r\nhello\r\n0\r\n\r\n'],
    ['GET', 'Transfer-Encoding: chunked\r\n', '5\r\nhello\r\n0\r\n\r\n'],
    ['DELETE', 'Transfer-Encoding: chunked\r\n', '5\r\nhello\r\n0\r\n\r\n'],
  ])('reaches V3 as exactly one request (a %s with the framing %j)', async (method, framing, body) => {
    for (const named of [
      '',
      ', content-length, transfer-encoding, host, authorization, ocp-apim-subscription-key',
    ]) {
      const upstream = await startUpstream(replyWith(200, 'ok', { 'Content-Type': 'text/plain' }))
      const allow = [{ path: '/V3/x', methods: ['GET', 'POST', 'DELETE'] }]
      const adapter = await startAdapter(upstream.url, { passThrough: { allow } })
      const lines = `${framing}Connection: close${named}\r\n`
      const reply = await exchange(adapter.port, requestText(`${method} /V3/x`, lines, body))
      expect(reply).toMatch(/^HTTP\/1\.1 200 /)
      expect(upstream.seen.map((seen) => [seen.method, seen.body])).toEqual([[method, 'hello']])
      expect(upstream.seen[0]?.headers).toMatchObject({
        host: `127.0.0.1:${upstream.port}`,
        authorization: 'bearer client-token',
        'ocp-apim-subscription-key': 'client-key',
      })
    }
  })

  it('does not let V3 see a second request that is hidden in the body', async () => {
    const { upstream, adapter } = await startWithV3(replyWith(200, 'ok', { 'Content-Type': 'text/plain' }))
    const hidden = 'GET /V3/hidden HTTP/1.1\r\nHost: x\r\n\r\n'
    for (const name of ['content-length', 'Content-Length', 'transfer-encoding']) {
      const lines = `Content-Length: ${hidden.length}\r\nConnection: ${name}\r\n`
      const client = await RawClient.open(adapter.port, requestText('GET /V3/x', lines, hidden))
      await client.until('ok')
    }
    expect((await adapter.request('GET', '/V3/y')).text).toBe('ok')
    expect(upstream.seen.map(({ url }) => url)).toEqual(['/V3/x', '/V3/x', '/V3/x', '/V3/y'])
  })

  it.each([
    ['/Learner/V3/LearnerSENs(1)', true],
    ['/v1/learnergrants', true],
    ['/Attendance/V3/$metadata', true],
    ["/Learner/v3/LearnerGroups(ExternalID=1,GroupType=SIMS.GroupTypeEnum'YearGroup')/LearnerIdentifiers", true],
    ['/V2/Attendance/Others', false],
    ['/', false],
    ['/admin', false],
    ['/V3', true],
    ['/Attendance/V3', true],
    ['/x/v1', true],
    ['/V2', false],
  ])('is sent to the path %s only if the allow list contains that path: %s', async (path, allowed) => {
    const { upstream, adapter } = await startWithV3(replyWith(200))
    const reply = await adapter.request('GET', path)
    expect([reply.status, upstream.seen.map(({ url }) => url)]).toEqual(allowed ? [200, [path]] : [404, []])
  }) // prettier-ignore

  it('is not sent without credentials or with an empty allow list', async () => {
    const { upstream, adapter } = await startWithV3(replyWith(200), { passThrough: { allow: [] } })
    expect((await adapter.request('GET', '/V3/x')).status).toBe(404)
    const reply = await exchange(adapter.port, 'GET /V3/x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
    expect(reply).toMatch(/^HTTP\/1\.1 401 [^]*"statusCode":401/)
    expect(upstream.seen).toEqual([])
  })
})
