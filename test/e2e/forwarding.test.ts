import { describe, expect, it } from 'vitest'

import { Secret } from '../../src/config/index.ts'
import { batchOf, flatRecord, postBatch } from '../support/batch-request.ts'
import { RawClient, requestText } from '../support/raw-client.ts'
import { echoRecord, startUpstream } from '../support/scripted-upstream.ts'
import { onePartner, startAdapter, startWithV3 } from '../support/start-adapter.ts'

const claims =
  'X-Forwarded-For: 127.0.0.1\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: evil.test\r\nX-Forwarded-Prefix: /evil\r\nForwarded: for=1.2.3.4;host=evil.test\r\n' +
  'X-Real-IP: 127.0.0.1\r\nVia: 1.1 evil\r\nX-Original-URL: /admin\r\nX-Rewrite-URL: /admin\r\nX-HTTP-Method-Override: DELETE\r\nX_HTTP_Method_Override: DELETE\r\n' +
  'X-Method-Override: DELETE\r\nX-HTTP-Method: DELETE\r\n'

it('the adapter forwards only the first value, which it uses itself, of a repeated header that may occur only once', async () => {
  const v2 = await startUpstream((_seen, response) => void response.end('ok'))
  const partners = [{ id: 'acme', match: { any: true }, clients: 'open', stage: 'legacy' }]
  const adapter = await startAdapter('http://127.0.0.1:9', { v2: { baseUrl: v2.url }, partners })
  const lines =
    'Content-Type: text/a\r\nAuthorization: bearer other\r\ncontent-type: text/b\r\nConnection: close\r\n'
  const client = await RawClient.open(adapter.port)
  client.send(requestText('GET /V2/Attendance/AttendanceRecords', lines))
  expect(await client.untilClosed()).toMatch(/^HTTP\/1\.1 200 /)
  expect(v2.seen[0]?.rawHeaders.filter((text) => /^(?:bearer|text)/.test(text))).toEqual([
    'bearer client-token',
    'text/a',
  ])
})

describe('a forwarding header that a client sends', () => {
  it('does not reach V3, and changes neither method nor path', async () => {
    const { upstream, adapter } = await startWithV3((_seen, response) => void response.end('ok'))
    const client = await RawClient.open(adapter.port)
    client.send(requestText('GET /V3/LearnerIdentifiers', `Connection: close\r\n${claims}`))
    expect(await client.untilClosed()).toMatch(/^HTTP\/1\.1 200 /)
    const [seen] = upstream.seen
    const text = JSON.stringify([seen?.method, seen?.url, seen?.rawHeaders])
    expect(text).not.toMatch(/evil|admin|DELETE|https|override|original|rewrite|1\.2\.3\.4|via|real-ip/i)
    expect(seen?.headers).toMatchObject({
      'x-forwarded-for': '127.0.0.1',
      'x-forwarded-proto': 'http',
      'x-forwarded-host': 'adapter.test',
    })
  })

  it.each([
    ['no trusted proxy is configured', [], 'http'],
    ['it comes from a trusted proxy', ['127.0.0.0/8'], 'https'],
    ['it comes from another address than the trusted proxy', ['10.0.0.1'], 'http'],
  ])(
    'decides the scheme of links only if a trusted proxy sends it: %s',
    async (_name, trustedProxies, scheme) => {
      const { adapter } = await startWithV3(echoRecord, { listen: { port: 0, trustedProxies } })
      const reply = await postBatch(adapter, batchOf([flatRecord(1)]), { 'X-Forwarded-Proto': 'https' })
      expect(reply.text).toContain(`"@odata.context":"${scheme}://127.0.0.1:${adapter.port}/`)
    },
  )
})

describe('a credential that the adapter adds', () => {
  const key = 'v3-key-0123/abc+def='
  const encoded = encodeURIComponent(key)
  const base64 = (text: string): string => Buffer.from(text).toString('base64')
  const leaks: Record<string, string> = {
    'X-Plain': key,
    'X-Longer': `key="${key}"; max-age=0`,
    'X-Upper': key.toUpperCase(),
    'X-Encoded': encoded,
    'X-Encoded-Twice': encodeURIComponent(encoded),
    'X-Encoded-Lower': encoded.toLowerCase(),
    'X-Base64': base64(key),
    'X-Base64-Url': Buffer.from(key).toString('base64url'),
    'X-Base64-Pair': `Basic ${base64(`user:${key}`)}`,
    'X-Base64-Pair-2': `Basic ${base64(`us:${key}:x`)}`,
    'X-Base64-Shifted': `ab${base64(key)}`,
    'X-Base64-Encoded': encodeURIComponent(base64(`x${key}`)),
    'X-Json': JSON.stringify({ key }).replaceAll('/', '\\/'),
    'Set-Cookie': `key=${encoded}; Path=/`,
    Location: `https://v3.test/?subscription-key=${encoded}`,
    [`X-${key.replace(/\W/g, '-')}`]: 'harmless',
  }
  const kept = { 'X-Client': 'client-key', 'X-Token': 'client-token', ETag: '"v3-key"', 'Set-Cookie': 'a=1' }

  it('occurs neither in a header nor in the status line of the reply, even if V3 repeats the credential there', async () => {
    const upstream = await startUpstream((_seen, response) => {
      const headers = Object.entries({ ...leaks, 'X-Kept': '1' }).flat()
      response.writeHead(200, `OK ${key}`, [...headers, ...Object.entries(kept).flat()]).end(`body ${key}`)
    })
    const adapter = await startAdapter(upstream.url, onePartner({ v3: { subscriptionKey: new Secret(key) } }))
    const client = await RawClient.open(adapter.port)
    client.send(requestText('GET /V3/LearnerIdentifiers', 'Connection: close\r\n'))
    const [head = '', body] = (await client.untilClosed()).split('\r\n\r\n')
    const names = head
      .split('\r\n')
      .slice(1)
      .map((line) => line.split(':')[0])
    expect(names.filter((name) => !['Date', 'Connection', 'Transfer-Encoding'].includes(name ?? ''))).toEqual(
      [`X-${key.replace(/\W/g, '-')}`, 'X-Kept', ...Object.keys(kept)],
    )
    expect(head).toMatch(/^HTTP\/1\.1 200 \r\n/)
    expect(body).toContain(`body ${key}`)
  })

  it('is removed from the headers of the reply, unlike the credentials of the client', async () => {
    const { adapter } = await startWithV3((_seen, response) => {
      response.writeHead(200, { 'X-Key': 'client-key', 'X-Token': 'bearer client-token' }).end('ok')
    })
    const { headers } = await adapter.request('GET', '/V3/LearnerIdentifiers')
    expect(headers).toMatchObject({ 'x-key': 'client-key', 'x-token': 'bearer client-token' })
  })
})
