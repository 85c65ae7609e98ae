import { createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { networkInterfaces } from 'node:os'

import { expect, it, onTestFinished } from 'vitest'

import { AdapterError, createApp, parseConfig } from '../../src/index.ts'
import { exchange } from '../support/raw-client.ts'
import { startAdapter } from '../support/start-adapter.ts'

const journal = { url: 'none' }

const upstreams = { v3: { baseUrl: 'http://127.0.0.1:1' } }

const hasIpv6 = Object.values(networkInterfaces()).some((list) =>
  list?.some(({ address }) => address === '::1'),
)

it.skipIf(!hasIpv6)(
  'the adapter listens on an IPv6 address and reports a URL that can be opened',
  async () => {
    const app = createApp(parseConfig({ journal, listen: { host: '::1', port: 0 }, upstreams }), {
      logLevel: 'silent',
    })
    const { url, port } = await app.listen()
    onTestFinished(() => app.close())
    expect(new URL(url).port).toBe(String(port))
    expect(new URL(url).hostname).toBe('[::1]')
  },
)

it('the adapter reports a configuration error when it cannot listen', async () => {
  const other = createServer().listen(0, '127.0.0.1')
  await once(other, 'listening')
  const { port } = other.address() as AddressInfo
  const app = createApp(parseConfig({ journal, listen: { port }, upstreams }), { logLevel: 'silent' })
  const error: unknown = await app.listen().catch((cause: unknown) => cause)
  expect(error).toBeInstanceOf(AdapterError)
  expect(error).toMatchObject({
    code: 'ADP_CONFIGURATION',
    message: expect.stringContaining(`Port ${port} is in use (EADDRINUSE)`) as unknown,
  })
  other.close()
  await app.close()
})

it('the adapter can be closed before it listens, and can be closed twice', async () => {
  const app = createApp(parseConfig({ journal, listen: { port: 0 }, upstreams }), { logLevel: 'silent' })
  await app.close()
  await app.close()
})

it('the adapter rejects bytes that are not HTTP and keeps serving', async () => {
  const { port } = await startAdapter('http://127.0.0.1:1')
  for (const bytes of ['\u0016\u0003\u0001', 'GET / HTTP/9.9\r\n\r\n']) {
    const reply = await exchange(port, bytes)
    expect(reply).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/)
    expect(reply).toMatch(/\r\n\r\n\{"statusCode":400,"message":"The request is not valid HTTP\.[^"]*"\}$/)
  }
  expect(await exchange(port, 'GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')).toContain(
    '"ok"',
  )
})

it.each([
  ['a request target', `GET /${'x'.repeat(200_000)} HTTP/1.1\r\nHost: x\r\n\r\n`],
  ['a header field', `GET / HTTP/1.1\r\nHost: x\r\nX-Long: ${'x'.repeat(200_000)}\r\n\r\n`],
  [
    'a header field of a POST',
    `POST / HTTP/1.1\r\nX-Long: ${'x'.repeat(200_000)}\r\nContent-Length: 9\r\n\r\n{}`,
  ],
])('the adapter sends a complete 431 response when %s is too long', async (_name, request) => {
  const { port } = await startAdapter('http://127.0.0.1:1')
  const lines = (await exchange(port, request)).split('\r\n')
  const body = lines.at(-1) ?? ''
  expect(JSON.parse(body)).toEqual({
    statusCode: 431,
    message: expect.stringContaining('too long') as unknown,
  })
  expect(lines).toEqual([
    'HTTP/1.1 431 Request Header Fields Too Large',
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
    'Connection: close',
    '',
    body,
  ])
})

it('the adapter accepts a request target of 100 KiB', async () => {
  const { port } = await startAdapter('http://127.0.0.1:1')
  const long = `GET /healthz?${'x'.repeat(100_000)} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`
  expect(await exchange(port, long)).toMatch(/^HTTP\/1\.1 200 /)
})
