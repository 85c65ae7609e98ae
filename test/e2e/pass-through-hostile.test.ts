import type { Socket } from 'node:net'

import { describe, expect, it } from 'vitest'

import { exchange, RawClient, requestText } from '../support/raw-client.ts'
import { startRawUpstream as startSockets } from '../support/raw-upstream.ts'
import { startRawUpstream } from '../support/scripted-upstream.ts'
import { type Adapter, startAdapter } from '../support/start-adapter.ts'

/** Starts a V3 service that calls `serve` with each piece of a request as the piece arrives. */
const startBytes = async (serve: (socket: Socket, piece: string) => void): Promise<string> =>
  (await startSockets((socket, _seen, piece) => serve(socket, piece))).url

/** Starts an adapter whose V3 service answers every request with these bytes, and then keeps, closes or resets the connection. */
async function adapterBefore(reply: string, end: 'keep' | 'close' | 'reset' = 'keep'): Promise<Adapter> {
  const url = await startBytes((socket) => {
    socket.write(Buffer.from(reply, 'latin1'), () => {
      if (end === 'close') socket.end()
      // Waits until the adapter has read the reply, because a reset can discard bytes that are not read yet.
      if (end === 'reset') setTimeout(() => socket.resetAndDestroy(), 30)
    })
  })
  return startAdapter(url, { v3: { timeouts: { headersMs: 300 } } })
}

const get = requestText('GET /V3/x', 'Connection: close\r\n')
const patch = requestText('PATCH /V3/LearnerPersonals(1)', 'Connection: close\r\nContent-Length: 2\r\n', '{}')

describe('a passed-through reply that breaks off or has no length', () => {
  const plain = 'HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n'
  // A JSON reply takes another path through the adapter, which rewrites links in it.
  const json = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n'
  const torn: [name: string, reply: string, end: 'close' | 'reset'][] = [
    ['with fewer bytes than Content-Length because the service closes the connection', `${plain}Content-Length: 9\r\n\r\nabc`, 'close'],
    ['with fewer bytes than Content-Length because the service resets the connection', `${plain}Content-Length: 9\r\n\r\nabc`, 'reset'],
    ['between chunks because the service closes the connection', `${plain}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n`, 'close'],
    ['between chunks because the service resets the connection', `${plain}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n`, 'reset'],
    ['with a malformed chunk', `${plain}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n`, 'close'],
    ['with a reset and has no length', `${plain}Connection: close\r\n\r\nabc`, 'reset'],
    ['with a reset and has no length (JSON)', `${json}\r\nabc`, 'reset'],
    ['with fewer bytes than Content-Length because the service resets the connection (JSON)', `${json}Content-Length: 9\r\n\r\nabc`, 'reset'],
    ['between chunks because the service resets the connection (JSON)', `${json}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n`, 'reset'],
  ] // prettier-ignore
  it.each(torn)('never looks complete when it ends %s', async (_name, reply, end) => {
    const adapter = await adapterBefore(reply, end)
    const got = await exchange(adapter.port, get)
    expect(got).not.toMatch(/\r\n0\r\n\r\n$/)
    expect(got).toMatch(
      /^$|^HTTP\/1\.1 200 OK\r\n(?:.*\r\n)*(?:Transfer-Encoding: chunked|Content-Length: 9)/i,
    )
    expect(adapter.events().slice(1)).toMatchObject([
      { msg: 'pass-through failed', reason: 'brokenReply' },
      { msg: 'passed through', method: 'GET' },
    ])
  })

  it('is complete if it has no length and the service closes the connection normally', async () => {
    const adapter = await adapterBefore(`${plain}Connection: close\r\n\r\nabc`, 'close')
    expect(await exchange(adapter.port, get)).toMatch(/\r\n\r\n3\r\nabc\r\n0\r\n\r\n$/)
  })
})

describe('the adapter, when it passes a malformed or unusual reply through', () => {
  it('sends no body after HEAD, even if the service sends one, and the next reply is intact', async () => {
    const url = await startBytes((socket, first) => {
      socket.write(
        `HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n\r\n${first.slice(0, 3)}`,
      )
    })
    const adapter = await startAdapter(url)
    const head = await exchange(adapter.port, requestText('HEAD /V3/x', 'Connection: close\r\n'))
    expect(head).toMatch(/Content-Length: 3\r\n[^]*\r\n\r\n$/)
    const next = await exchange(adapter.port, get)
    expect(next).toMatch(/\r\n\r\nGET$/)
  })

  it('leaves out early hints before the reply', async () => {
    const hints = 'HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n'
    const adapter = await adapterBefore(`${hints}${hints}HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok`)
    const got = await exchange(adapter.port, get)
    expect(got).toMatch(/^HTTP\/1\.1 200 OK[^]*\r\n\r\nok$/)
    expect(got).not.toContain('Link')
  })

  it('keeps every Set-Cookie, in order and letter case', async () => {
    const cookies = 'Set-Cookie: b=2\r\nset-cookie: a=1\r\nSET-COOKIE: b=3\r\n'
    const adapter = await adapterBefore(`HTTP/1.1 200 OK\r\n${cookies}Content-Length: 0\r\n\r\n`)
    expect(await exchange(adapter.port, get)).toContain(cookies)
  })

  it('removes trailers', async () => {
    const adapter = await adapterBefore(
      'HTTP/1.1 200 OK\r\nTrailer: X-End\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-End: 1\r\n\r\n',
    )
    const got = await exchange(adapter.port, get)
    expect(got).toMatch(/2\r\nok\r\n0\r\n\r\n$/)
    expect(got).not.toContain('X-End')
  })

  const refused: [name: string, reply: string][] = [
    ['a header block of 1 MB', `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(1_000_000)}\r\nContent-Length: 0\r\n\r\n`],
    ['very many header fields', `HTTP/1.1 200 OK\r\n${'X: 1\r\n'.repeat(20_000)}Content-Length: 0\r\n\r\n`],
    ['a folded header', 'HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 0\r\n\r\n'],
    ['two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab'],
    ['a length and chunks', 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'],
    ['a negative length', 'HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n'],
    ['the version HTTP/2', 'HTTP/2 200 OK\r\n\r\n'],
    ['no bytes', ''],
  ] // prettier-ignore
  it.each(refused)(
    'answers 503 for a read, and an unknown outcome for a write, if the reply has %s',
    async (_name, reply) => {
      const adapter = await adapterBefore(reply)
      expect(await exchange(adapter.port, get)).toMatch(/^HTTP\/1\.1 503 [^]*ADP_UPSTREAM_UNAVAILABLE/)
      expect(await exchange(adapter.port, patch)).toMatch(/^HTTP\/1\.1 504 [^]*ADP_OUTCOME_UNKNOWN/)
    },
  )

  it('does not return bytes that V3 sent before the request', async () => {
    const url = await startBytes((socket) => {
      socket.write(
        'HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\naHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nb',
      )
    })
    const adapter = await startAdapter(url)
    for (let round = 0; round < 3; round += 1) expect(await exchange(adapter.port, get)).toMatch(/\r\n\r\na$/)
  })
})

describe('a passed-through upload', () => {
  const size = 20_000_000
  const start = requestText('POST /V3/AttendanceRecords', `Content-Length: ${size}\r\n`)

  it('gets a reply that comes before the upload ends, and leaves the connection usable', async () => {
    const url = await startBytes((socket, first) => {
      if (first.startsWith('POST')) socket.write('HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig')
      else if (first.startsWith('GET')) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnext')
    })
    const adapter = await startAdapter(url)
    const client = await RawClient.open(adapter.port, start)
    client.send(Buffer.alloc(1_000_000, 'x'))
    expect(await client.until(/\r\n\r\nbig/)).toMatch(/^HTTP\/1\.1 413 Too Large\r\n/)
    client.send(Buffer.alloc(size - 1_000_000, 'x'))
    client.send(requestText('GET /V3/x'))
    await client.until(/\r\n\r\nnext/)
  })

  it("has an unknown outcome if the service resets the connection, and leaves the client's connection usable", async () => {
    const upstream = await startRawUpstream((request) => {
      request.once('data', () => request.socket.resetAndDestroy())
      request.on('error', () => undefined)
    })
    const adapter = await startAdapter(upstream.url)
    const client = await RawClient.open(adapter.port, start)
    client.send(Buffer.alloc(1_000_000, 'x'))
    expect(await client.until('ADP_OUTCOME_UNKNOWN')).toMatch(/^HTTP\/1\.1 504 /)
    client.send(Buffer.alloc(size - 1_000_000, 'x'))
    client.send('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n')
    await client.until(/\r\n\r\n[^]*HTTP\/1\.1 200 /)
  })

  it('is aborted at the service when the client disconnects', async () => {
    const gone = Promise.withResolvers<undefined>()
    const upstream = await startRawUpstream((request, _response, _seen, arrive) => {
      const { method = '', url = '', headers, rawHeaders } = request
      request.once('data', () => arrive({ method, url, headers, rawHeaders, body: '', index: 0 }))
      request.resume()
      request.on('error', () => undefined)
      request.on('close', () => gone.resolve(undefined))
    })
    const adapter = await startAdapter(upstream.url)
    const client = await RawClient.open(adapter.port, start)
    client.send(Buffer.alloc(1_000_000, 'x'))
    await upstream.arrived(1)
    client.socket.destroy()
    await gone.promise
    expect(adapter.log.join('')).not.toContain('internal error')
  })
})
