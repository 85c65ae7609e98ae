import { describe, expect, it, onTestFinished } from 'vitest'

import { createSelfSigned } from '../../src/cli/self-signed.ts'
import { expiryOf, Secret } from '../../src/config/index.ts'
import { batchOf, batchPath, batchText, flatRecords } from '../support/batch-request.ts'
import { RawClient, requestText } from '../support/raw-client.ts'
import { type Answer, startUpstream } from '../support/scripted-upstream.ts'
import { type Adapter, adapterConfig, startAdapter } from '../support/start-adapter.ts'
import { readSamples } from '../support/read-samples.ts'

const own = createSelfSigned(Date.now())
const later = createSelfSigned(Date.now() + 1_000_000)
const listenWith = ({ cert, key }: typeof own) => ({
  port: 0,
  tls: { cert: new Secret(cert), key: new Secret(key) },
})
const listen = listenWith(own)

const open = (adapter: Adapter, text: string, { cert }: typeof own = own): Promise<RawClient> =>
  RawClient.open(adapter.port, text, { ca: cert, servername: 'localhost' })

const linked: Answer = ({ url, headers }, response) => {
  const link = `http://${headers.host}${url}`
  response
    .writeHead(200, { 'Content-Type': 'application/json' })
    .end(JSON.stringify({ '@odata.nextLink': link }))
}

describe('an adapter with listen.tls', () => {
  it('serves https, and its links and contexts have the scheme https', async () => {
    const upstream = await startUpstream(linked)
    const adapter = await startAdapter(upstream.url, { listen })
    expect(adapter.url).toMatch(/^https:/)
    const client = await open(adapter, requestText('GET /V3/LearnerPersonals', 'Connection: close\r\n'))
    expect(await client.untilClosed()).toContain('"@odata.nextLink":"https://adapter.test/')
    expect(upstream.seen[0]?.headers).toMatchObject({
      'x-forwarded-proto': 'https',
      'x-forwarded-port': '443',
    })
  })

  it('uses the certificate of a reload for new connections, and shows the new expiry date as a metric', async () => {
    const upstream = await startUpstream()
    const adapter = await startAdapter(upstream.url, { listen })
    const expiry = async (certificate: typeof own): Promise<number> => {
      const client = await open(
        adapter,
        'GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n',
        certificate,
      )
      const name = /^markbridge_listener_certificate_expiry_timestamp_seconds (\d+)$/m
      return Number(name.exec(await client.untilClosed())?.[1])
    }
    expect(await expiry(own)).toBe(expiryOf(listen.tls.cert) / 1_000)
    const kept = await open(adapter, requestText('GET /healthz'))
    const changed = adapterConfig(upstream.url, { listen: listenWith(later) })
    expect(await adapter.app.reload(() => changed)).toMatchObject({ needsRestart: [] })
    expect(await expiry(later)).toBe(expiryOf(listenWith(later).tls.cert) / 1_000)
    kept.send(requestText('GET /healthz', 'Connection: close\r\n'))
    expect(await kept.untilClosed()).toMatch(/^HTTP\/1\.1 200 [^]*HTTP\/1\.1 200 /)
  })

  it('needs a restart to turn TLS on or off', async () => {
    const upstream = await startUpstream()
    const adapter = await startAdapter(upstream.url, { listen })
    const changed = adapterConfig(upstream.url, { listen: { port: 0 } })
    expect(await adapter.app.reload(() => changed)).toMatchObject({ needsRestart: ['listen.tls'] })
    expect(await adapter.request('GET', '/healthz')).toMatchObject({ status: 200 })
  })

  it('sends the whole reply to a client that closes its sending side after its request', async () => {
    const adapter = await startAdapter((await startUpstream()).url, { listen })
    const client = await open(adapter, '')
    client.socket.end(batchText(batchOf(flatRecords(2))))
    expect(await client.untilClosed()).toMatch(/^HTTP\/1\.1 200 [^]*201[^]*201/)
  })

  it('logs and counts a client that sends plain HTTP', async () => {
    const adapter = await startAdapter((await startUpstream()).url, { listen })
    const client = await RawClient.open(adapter.port, requestText('GET /healthz'))
    await client.untilClosed()
    expect(adapter.events().find(({ msg }) => msg === 'TLS handshake failed')).toMatchObject({
      reason: 'plainHttp',
    })
    expect((await readSamples(adapter)).get('markbridge_handshake_failures_total{reason="plainHttp"}')).toBe(
      1,
    )
  })

  it('cuts off a client that uploads too slowly', async () => {
    const adapter = await startAdapter(
      (await startUpstream()).url,
      { listen },
      { slowClients: { uploadMs: 400, minBytesPerSecond: 100 } },
    )
    const { headers, body } = batchOf(flatRecords(3))
    const lines = `Content-Type: ${headers['Content-Type']}\r\nContent-Length: 500000\r\n`
    const slow = await open(adapter, requestText(`POST ${batchPath}`, lines, body))
    const timer = setInterval(() => slow.send('x'), 100)
    onTestFinished(() => clearInterval(timer))
    expect(await slow.untilClosed()).toMatch(/^HTTP\/1\.1 408 [^]*"code":"ADP_SLOW_CLIENT"/)
  })

  it('cuts off a client that reads too slowly, but not a client that reads steadily', async () => {
    const page = Buffer.alloc(30_000_000, 'x')
    const upstream = await startUpstream((_seen, response) => void response.writeHead(200).end(page))
    const pace = { slowClients: { replyMs: 1_000, minBytesPerSecond: 1_000 } }
    const adapter = await startAdapter(upstream.url, { listen }, pace)
    const request = requestText('GET /V3/LearnerPersonals', 'Connection: close\r\n')
    const [slow, steady] = [await open(adapter, request), await open(adapter, request)]
    slow.socket.pause()
    steady.socket.pause()
    const timer = setInterval(() => {
      steady.socket.resume()
      setImmediate(() => steady.socket.pause())
    }, 50)
    await expect
      .poll(() => adapter.events().filter(({ msg }) => msg === 'slow client cut off'), { timeout: 15_000 })
      .toEqual([{ msg: 'slow client cut off', phase: 'reply' }])
    clearInterval(timer)
    steady.socket.resume()
    expect((await steady.untilClosed()).length).toBeGreaterThan(page.length)
  })
})
