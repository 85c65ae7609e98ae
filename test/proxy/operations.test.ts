import { type IncomingMessage, ServerResponse } from 'node:http'

import { expect, it } from 'vitest'

import { AdapterError } from '../../src/errors.ts'
import { createOperations, type MetricsPage, type Readiness } from '../../src/proxy/operations.ts'
import { incomingMessage } from '../support/incoming-message.ts'

const request = (
  remoteAddress: string | undefined,
  headers: Readonly<Record<string, string | undefined>> = {},
): IncomingMessage => incomingMessage({ remoteAddress, headers: { host: 'localhost:8080', ...headers } })

async function statusFor(
  readers: MetricsPage['readers'],
  asking: IncomingMessage,
  path = '/metrics',
  readiness: Readiness = 'ready',
): Promise<number> {
  const render = (): Promise<{ contentType: string; text: string }> =>
    Promise.resolve({ contentType: 'text/plain', text: 'up 1' })
  const response = new ServerResponse(asking)
  try {
    await createOperations(() => readiness, { readers, render }).get(path)?.(asking, response)
    return response.statusCode
  } catch (error) {
    if (error instanceof AdapterError) return error.status
    throw error
  }
}

const rows: [address: string | undefined, headers: Record<string, string | undefined>, status: number][] = [
  ['127.0.0.1', {}, 200],
  ['127.8.9.1', {}, 200],
  ['::1', {}, 200],
  ['::ffff:127.0.0.1', {}, 200],
  ['10.0.0.1', {}, 403],
  ['::ffff:10.0.0.127', {}, 403],
  ['fe80::1', {}, 403],
  [undefined, {}, 403],
  ['127.0.0.1', { 'x-forwarded-for': '10.0.0.1' }, 403],
  ['::1', { forwarded: 'for=10.0.0.1' }, 403],
  ['::1', { 'x-real-ip': '10.0.0.1' }, 403],
  ['::1', { via: '1.1 proxy' }, 403],
  ['::1', { 'x-forwarded-proto': 'https' }, 403],
  ['::1', { x_forwarded_for: '10.0.0.1' }, 403],
  ['127.0.0.1', { host: '127.0.0.1:8080' }, 200],
  ['::1', { host: '[::1]:8080' }, 200],
  ['127.0.0.1', { host: 'rebound.test:8080' }, 403],
  ['127.0.0.1', { host: undefined }, 403],
]

it.each(rows)(
  'GET /metrics from %s with headers %j returns the status %i unless the metrics are open to all',
  async (address, headers, status) => {
    expect(await statusFor('loopback', request(address, headers))).toBe(status)
    expect(await statusFor('any', request(address, headers))).toBe(200)
  },
)

it.each([
  ['/healthz', 200],
  ['/readyz', 503],
])('GET %s returns the status %i while the adapter stops', async (path, status) => {
  expect(await statusFor('any', request('127.0.0.1'), path, 'stopping')).toBe(status)
})
