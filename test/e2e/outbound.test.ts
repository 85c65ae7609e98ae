import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { TLSSocket } from 'node:tls'

import { describe, expect, it, onTestFinished } from 'vitest'

import { Secret } from '../../src/config/index.ts'
import { makeFolder } from '../journal/open-sqlite.ts'
import { batchOf, flatRecords, postBatch, readBatchReply } from '../support/batch-request.ts'
import { createAuthority } from '../support/create-authority.ts'
import { findProgram } from '../support/find-program.ts'
import { freePort } from '../support/free-port.ts'
import { RawClient } from '../support/raw-client.ts'
import { type Answer, echoOf, echoRecord, startUpstream } from '../support/scripted-upstream.ts'
import { type Adapter, codeOf, onePartner, startAdapter } from '../support/start-adapter.ts'
import { startProxy } from '../support/start-proxy.ts'

const LEARNERS = '/V3/LearnerPersonals'
const allow = [{ path: '/V3/**', methods: ['GET', 'PATCH'] }]
const brief = onePartner({ v3: { budgetMs: 300 } })

/** Answers a read with an empty page, a write to V2 with 204, and a write to V3 with its record. */
const answer: Answer = (seen, response) => {
  if (seen.method === 'GET') response.end('{"value":[]}')
  else if (seen.url.includes('V2')) response.writeHead(204).end()
  else void echoRecord(seen, response)
}

/** Sends a batch of two records, a V2 read, a passed-through read and a streamed upload. Returns the status of each record and request. */
async function callAll(adapter: Adapter): Promise<unknown[]> {
  const batch = await postBatch(adapter, batchOf(flatRecords(2)))
  const read = '/V2/Attendance/AttendanceRecords?$filter=Present%20eq%20true'
  const upload = { body: JSON.stringify({ big: 'x'.repeat(100_000) }) }
  const others = [
    await adapter.request('GET', read),
    await adapter.request('GET', LEARNERS),
    await adapter.request('PATCH', LEARNERS, upload),
  ]
  return [...readBatchReply(batch).map(({ status }) => status), ...others.map(({ status }) => status)]
}

describe('upstreams.v3.proxy', () => {
  it("carries every request to V3 in a tunnel, and sends the proxy's credentials only to the proxy", async () => {
    const upstream = await startUpstream(answer)
    const proxy = await startProxy({ target: upstream.port })
    const url = proxy.url.replace('//', '//jane:p%40ss@')
    const adapter = await startAdapter('http://v3.test:8443/', { v3: { proxy: url }, passThrough: { allow } })
    expect(await callAll(adapter)).toEqual([201, 201, 200, 200, 201])
    const basic = `Basic ${Buffer.from('jane:p@ss').toString('base64')}`
    expect(new Set(proxy.asked)).toEqual(new Set([`CONNECT v3.test:8443 ${basic}`]))
    expect(upstream.seen.map(({ headers }) => [headers.host, headers['proxy-authorization']])).toEqual(
      Array(5).fill(['v3.test:8443', undefined]),
    )
    expect(adapter.log.join()).not.toMatch(/jane|p%40ss|p@ss/)
    expect(adapter.events().find(({ msg }) => msg === 'started')).toMatchObject({
      proxies: [`${proxy.url} (upstreams.v3.proxy)`],
    })
  })

  it('carries requests to the token endpoint', async () => {
    const tokens = await startUpstream((_seen, response) => void response.end('{"access_token":"t1"}'))
    const proxy = await startProxy({ target: tokens.port })
    const auth = {
      ...{ mode: 'clientCredentials', tokenUrl: `${tokens.url}/token`, clientId: 'id', scope: 's' },
      clientSecret: new Secret('secret'),
    }
    const adapter = await startAdapter('http://v3.test/', {
      v3: { proxy: proxy.url },
      ...onePartner({ v3: { budgetMs: 300, auth } }),
    })
    await adapter.request('GET', LEARNERS)
    expect(proxy.asked).toContain(`CONNECT 127.0.0.1:${tokens.port}`)
    expect(tokens.seen[0]?.url).toBe('/token')
  })

  it.each([407, 403, 502])(
    'reports requests as not sent if the proxy answers %i, and the log names the proxy',
    async (status) => {
      const upstream = await startUpstream(answer)
      const proxy = await startProxy({ status })
      const url = proxy.url.replace('//', '//jane:hush@')
      const adapter = await startAdapter(upstream.url, {
        v3: { proxy: url },
        passThrough: { allow },
        ...brief,
      })
      expect(await callAll(adapter)).toEqual([503, 503, 503, 503, 503])
      expect(codeOf(await adapter.request('PATCH', LEARNERS, { body: '{}' }))).toBe(
        '503 ADP_UPSTREAM_UNAVAILABLE',
      )
      expect(upstream.seen).toEqual([])
      const failed = adapter.events().filter(({ msg }) => msg === 'outbound proxy failed')
      expect(failed[0]).toEqual({
        msg: 'outbound proxy failed',
        upstream: 'v3',
        proxy: proxy.url,
        code: `PROXY_${status}`,
      })
      expect(adapter.log.join()).not.toMatch(/jane|hush/)
    },
  )

  it.each(['is not running', 'never answers'])(
    'reports requests as not sent if the proxy %s',
    async (state) => {
      const upstream = await startUpstream(answer)
      const silent = state === 'is not running' ? undefined : await startProxy({ isSilent: true })
      const port = silent?.port ?? (await freePort())
      const v3 = { proxy: `http://127.0.0.1:${port}`, timeouts: { connectMs: 100 } }
      const adapter = await startAdapter(upstream.url, { v3, passThrough: { allow }, ...brief })
      expect(await callAll(adapter)).toEqual([503, 503, 503, 503, 503])
      expect(upstream.seen).toEqual([])
      const failed = adapter.events().find(({ msg }) => msg === 'outbound proxy failed')
      expect(failed).toMatchObject({ code: silent ? 'UND_ERR_CONNECT_TIMEOUT' : 'ECONNREFUSED' })
    },
  )
})

it('upstreams.v2.proxy carries the requests that V2 serves', async () => {
  const upstream = await startUpstream(answer)
  const proxy = await startProxy({ target: upstream.port })
  const v2 = { baseUrl: 'http://v2.test/', proxy: proxy.url }
  const adapter = await startAdapter(upstream.url, { v2, ...onePartner({ stage: 'legacy' }) })
  await postBatch(adapter, batchOf(flatRecords(1)))
  await adapter.request('GET', '/V2/Attendance/AttendanceRecords')
  expect(upstream.seen.map(({ method, headers }) => `${method} ${headers.host}`)).toEqual([
    'POST v2.test',
    'GET v2.test',
  ])
  expect(new Set(proxy.asked)).toEqual(new Set(['CONNECT v2.test:80']))
})

/** Starts tinyproxy with the user `jane` and the password `hush`. Returns its host and port. */
async function startTinyproxy(program: string): Promise<string> {
  const [port, folder] = [await freePort(), await makeFolder()]
  const file = join(folder, 'tinyproxy.conf')
  await writeFile(
    file,
    [`Port ${port}`, 'Listen 127.0.0.1', 'Timeout 60', 'Allow 127.0.0.1', 'BasicAuth jane hush', ''].join(
      '\n',
    ),
  )
  const running = spawn(program, ['-d', '-c', file], { stdio: 'ignore' })
  onTestFinished(async () => {
    running.kill('SIGKILL')
    await once(running, 'exit')
  })
  const answers = async (): Promise<string> => {
    const client = await RawClient.open(port, 'GET http://x.test/ HTTP/1.0\r\n\r\n').catch(() => undefined)
    return client === undefined ? '' : client.untilClosed()
  }
  await expect.poll(answers, { timeout: 10_000 }).toContain('407')
  return `127.0.0.1:${port}`
}

const tinyproxy = findProgram('tinyproxy')
if (tinyproxy === undefined)
  console.warn('SKIPPED: tinyproxy is an outbound proxy (Debian: apt-get install tinyproxy).')

describe.skipIf(tinyproxy === undefined)('tinyproxy as upstreams.v3.proxy', () => {
  it('carries every request to V3 if the configured address of the proxy contains the user and password', async () => {
    const upstream = await startUpstream(answer)
    const address = await startTinyproxy(tinyproxy ?? '')
    const adapter = await startAdapter(upstream.url, {
      v3: { proxy: `http://jane:hush@${address}` },
      passThrough: { allow },
    })
    expect(await callAll(adapter)).toEqual([201, 201, 200, 200, 201])
    expect(upstream.seen).toHaveLength(5)
  })

  it('refuses a wrong password, and no request reaches V3', async () => {
    const upstream = await startUpstream(answer)
    const address = await startTinyproxy(tinyproxy ?? '')
    const v3 = { proxy: `http://jane:wrong@${address}` }
    const adapter = await startAdapter(upstream.url, { v3, passThrough: { allow }, ...brief })
    expect(await callAll(adapter)).toEqual([503, 503, 503, 503, 503])
    expect(upstream.seen).toEqual([])
    expect(adapter.events().find(({ msg }) => msg === 'outbound proxy failed')).toMatchObject({
      upstream: 'v3',
    })
  })
})

const openssl = findProgram('openssl')
if (openssl === undefined)
  console.warn('SKIPPED: openssl issues certificates (Debian: apt-get install openssl).')

describe.skipIf(openssl === undefined)('upstreams.v3.tls', () => {
  async function startSecure() {
    const authority = createAuthority(await makeFolder())
    const own = authority.issue('IP:127.0.0.1', -1, 1)
    const asked: unknown[] = []
    const options = { ...own, ca: authority.certificate, requestCert: true, rejectUnauthorized: true }
    const server = createServer(options, (request, response) => {
      asked.push(request.socket instanceof TLSSocket && request.socket.getPeerCertificate().subject.CN)
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.once('end', () => {
        const body = Buffer.concat(chunks).toString()
        if (request.method === 'GET') response.end('{"value":[]}')
        else
          response
            .writeHead(201)
            .end(echoOf({ body, index: asked.length, method: '', url: '', headers: {}, rawHeaders: [] }))
      })
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    onTestFinished(() => {
      server.close()
      server.closeAllConnections()
    })
    const { key, cert } = authority.issue('IP:127.0.0.2', -1, 1)
    const { port } = server.address() as AddressInfo
    return {
      ...{ asked, port, url: `https://127.0.0.1:${port}` },
      ca: new Secret(authority.certificate),
      client: { cert: new Secret(String(cert)), key: new Secret(String(key)) },
    }
  }

  it('trusts the configured certificate authority, and sends the client certificate with every request, also in a tunnel', async () => {
    const { url, port, ca, client, asked } = await startSecure()
    const proxy = await startProxy({ target: port })
    for (const v3 of [{ tls: { ca, ...client } }, { tls: { ca, ...client }, proxy: proxy.url }]) {
      const adapter = await startAdapter(url, { v3, passThrough: { allow } })
      expect(await callAll(adapter)).toEqual([201, 201, 200, 200, 201])
    }
    expect(asked).toEqual(Array(10).fill('service'))
    expect(proxy.asked[0]).toBe(`CONNECT 127.0.0.1:${port}`)
  })

  it.each(['the authority', 'the client certificate'])(
    'is necessary for a private service: no request reaches the service without %s',
    async (missing) => {
      const { url, ca, client, asked } = await startSecure()
      const tls = missing === 'the authority' ? client : { ca }
      const adapter = await startAdapter(url, { v3: { tls }, passThrough: { allow }, ...brief })
      const statuses = await callAll(adapter)
      expect(statuses.every((status) => Number(status) >= 500)).toBe(true)
      expect(asked).toEqual([])
    },
  )
})
