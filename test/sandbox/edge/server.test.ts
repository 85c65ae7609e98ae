import { createServer as createHttpServer } from 'node:http'
import { gzipSync } from 'node:zlib'
import supertest from 'supertest'
import { expect, test } from 'vitest'
import { AdapterError } from '../../../src/errors.ts'
import { readFaults } from '../../../src/sandbox/control/fault.ts'
import { jsonReply } from '../../../src/sandbox/edge/reply.ts'
import type { ServiceRequest } from '../../../src/sandbox/edge/request.ts'
import { createServer } from '../../../src/sandbox/edge/server.ts'
import type { ServerParts } from '../../../src/sandbox/edge/server.ts'

/** The HTTP edge around a service that is given; it admits everybody. */
function serve(service: ServerParts['service'], errors: unknown[] = [], faults: unknown[] = []) {
  const app = createServer({
    admit: () => ({ principal: { actorId: 'a', domains: undefined } }),
    issueToken: (contentType, body) => jsonReply(200, JSON.stringify({ contentType, body })),
    service,
    control: undefined,
    maxBodyBytes: 100,
    latencyMs: 0,
    contextUrl: undefined,
    strike: () => readFaults(faults),
    staleAfter: () => 0,
    onError: (error) => void errors.push(error),
  })
  return supertest(createHttpServer(app))
}
const echo: ServerParts['service'] = ({ method, path, query, body, origin, header }: ServiceRequest) =>
  jsonReply(
    200,
    JSON.stringify({ method, path, query, body: body.toString(), origin, accept: header('x-many') }),
  )

test('a request reaches the service as it was sent', async () => {
  const reply = await serve(echo)
    .put('/V3/a%20b?$top=1&x=?')
    .set('Host', 'school.test:81')
    .set('X-Many', ['1', '2'].join(', '))
    .send('{"a":1}')
  expect(reply.body).toEqual({
    method: 'PUT',
    path: '/V3/a%20b',
    query: '$top=1&x=?',
    body: '{"a":1}',
    origin: 'http://school.test:81',
    accept: '1, 2',
  })
  expect(reply.headers).toMatchObject({
    'content-type': 'application/json; odata.metadata=minimal',
    'odata-version': '4.0',
    'content-length': String(Buffer.byteLength(reply.text)),
  })
  expect(reply.headers['x-powered-by']).toBeUndefined()
})

test('a compressed body is read, one that is too large or cannot be read is refused', async () => {
  const send = (body: Buffer, encoding: string) =>
    serve(echo)
      .post('/V3')
      .set('Content-Encoding', encoding)
      .serialize(() => body as never)
      .send(body)
  expect((await send(gzipSync('{"a":1}'), 'gzip')).body).toMatchObject({ body: '{"a":1}' })
  expect((await send(gzipSync('x'.repeat(101)), 'gzip')).status).toBe(413)
  expect((await send(Buffer.from('x'), 'zstd')).status).toBe(415)
  expect((await send(Buffer.from('x'), 'gzip')).status).toBe(400)
})

test('a fault of the sandbox is status 500 without a word of it, and is heard of', async () => {
  const errors: unknown[] = []
  const fault = new TypeError('the cause')
  const reply = await serve(() => {
    throw fault
  }, errors).get('/V3')
  expect([reply.status, reply.body]).toEqual([
    500,
    { error: { code: 'InternalError', message: 'The sandbox failed on this request.' } },
  ])
  expect(errors).toEqual([fault])
})

test.each([
  [new AdapterError('ADP_QUERY', 'Wrong', { at: { path: '$filter' } }), 400, 'InvalidQuery'],
  [new AdapterError('ADP_TRUNCATED', 'Cut'), 400, 'BadRequest'],
  [new AdapterError('ADP_INTERNAL', 'Secret'), 500, 'InternalError'],
])('a known fault is told with a code of the service', async (error, status, code) => {
  const reply = await serve(() => {
    throw error
  }).get('/V3')
  expect([reply.status, reply.body]).toMatchObject([status, { error: { code } }])
  expect(reply.text).not.toContain('ADP_')
  expect(reply.text).not.toContain('Secret')
})

test('a form that is too large is refused, also where a fault keeps the request from being handled', async () => {
  const refusal = { error: { code: 'PayloadTooLarge' } }
  const form = await serve(echo)
    .post('/connect/token')
    .type('form')
    .send(`a=${'x'.repeat(16_384)}`)
  expect([form.status, form.body]).toMatchObject([413, refusal])
  const disturbed = await serve(echo, [], [{ kind: 'status', status: 503 }])
    .post('/V3')
    .send('x'.repeat(101))
  expect([disturbed.status, disturbed.body]).toMatchObject([413, refusal])
})

test('the token endpoint is found under any prefix, control is not there when it is off', async () => {
  const reply = await serve(echo).post('/x/Connect/Token').type('form').send('a=1')
  expect(reply.body).toEqual({ contentType: 'application/x-www-form-urlencoded', body: 'a=1' })
  expect((await serve(() => jsonReply(404, '{}')).get('/_sandbox/samples')).status).toBe(404)
})
