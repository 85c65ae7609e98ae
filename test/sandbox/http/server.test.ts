import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { jsonBody, nestedMark, recordsOf, startSandbox } from '../start-sandbox.ts'

const path = recordsOf.V3
const mark = JSON.stringify(nestedMark())

test.each([
  ['gzip', gzipSync(mark), 201],
  ['gzip', gzipSync(' '.repeat(1001)), 413],
  ['zstd', Buffer.from(mark), 415],
  ['gzip', Buffer.from(mark), 400],
])(
  'the sandbox answers a body with Content-Encoding %s with $2 (sample %#)',
  async (encoding, body, status) => {
    const { request } = await startSandbox({ maxBodyBytes: 1000 })
    const headers = { ...jsonBody, 'Content-Encoding': encoding }
    expect((await request('POST', path, { headers, body })).status).toBe(status)
  },
)

test('the sandbox rejects a body that is too large even if a fault replaces the reply', async () => {
  const { json, put } = await startSandbox({ maxBodyBytes: 1000 })
  await put('faults', { kind: 'status', status: 503 })
  const reply = await json('POST', path, { headers: jsonBody, body: 'x'.repeat(1001) })
  expect(reply).toMatchObject({ status: 413, body: { error: { code: 'PayloadTooLarge' } } })
  const form = { 'Content-Type': 'application/x-www-form-urlencoded' }
  const token = await json('POST', '/x/Connect/Token', { headers: form, body: 'a'.repeat(16_385) })
  expect(token).toMatchObject({ status: 413, body: { error: { code: 'PayloadTooLarge' } } })
})

test('the sandbox builds next links from the host that the client called', async () => {
  const { request } = await startSandbox()
  const reply = await request('GET', '/p/V3', { headers: { Host: 'school.test:81' } })
  expect(reply.headers).toMatchObject({
    'odata-version': '4.0',
    'content-length': String(Buffer.byteLength(reply.text)),
  })
  expect(reply.headers['x-powered-by']).toBeUndefined()
  expect(JSON.parse(reply.text)).toMatchObject({ '@odata.context': 'http://school.test:81/p/V3/$metadata' })
})
