import { describe, expect, it } from 'vitest'

import { AdapterError } from '../../src/errors.ts'
import { createEvents } from '../../src/observability/events.ts'
import { createLogger } from '../../src/observability/logger.ts'
import { sendError } from '../../src/proxy/error-reply.ts'
import { exchange } from '../support/raw-client.ts'
import { startUpstream } from '../support/scripted-upstream.ts'

/** Returns the reply that a client reads, and the log, when a request ends with `cause`. */
async function replyTo(cause: unknown, begun = false): Promise<{ head: string; body: string; log: string }> {
  const log: string[] = []
  const events = createEvents(createLogger('trace', { write: (line) => log.push(line) }))
  const { port } = await startUpstream((_seen, response) => {
    const fail = (): void => {
      sendError(response, cause, events, 'acme')
    }
    if (begun) response.writeHead(200, { 'Content-Length': 9 }).write('begun', fail)
    else fail()
  })
  const text = await exchange(port, 'GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
  const [head = '', body = ''] = text.split('\r\n\r\n')
  return { head, body, log: log.join('') }
}

describe('sendError', () => {
  it.each([
    ['ADP_HOST', 'HTTP/1.1 400 Bad Request', []],
    ['ADP_NOT_FOUND', 'HTTP/1.1 404 Not Found', []],
    ['ADP_TOO_LARGE', 'HTTP/1.1 413 Payload Too Large', ['Connection: close']],
    ['ADP_OVERLOADED', 'HTTP/1.1 503 Service Unavailable', ['Retry-After: 5']],
    ['ADP_OUTCOME_UNKNOWN', 'HTTP/1.1 504 Gateway Timeout', []],
  ] as const)('sends %s in the OData error format (batch-wire 5)', async (code, status, headers) => {
    const { head, body, log } = await replyTo(new AdapterError(code, 'told'))
    expect(head.split('\r\n')).toEqual(
      expect.arrayContaining([status, 'Content-Type: application/json; charset=utf-8', ...headers]),
    )
    expect(JSON.parse(body)).toEqual({ error: { code, message: 'told', details: [] } })
    expect(log).toContain(`"code":"${code}"`)
    expect(log).toContain('"partner":"acme"')
  })

  it.each([
    ['ADP_TOKEN', 401, true],
    ['ADP_SUBSCRIPTION_KEY', 401, true],
    ['ADP_FORBIDDEN', 403, false],
  ] as const)(
    'sends %s in the error format of the gateway (service-facts 12)',
    async (code, statusCode, challenge) => {
      const { head, body } = await replyTo(new AdapterError(code, 'told'))
      expect(JSON.parse(body)).toEqual({ statusCode, message: 'told' })
      expect(head.includes('WWW-Authenticate: Bearer')).toBe(challenge)
    },
  )

  it.each([new TypeError('hush'), 'hush', undefined, { hush: 1 }])(
    'shows and logs only the kind of the unexpected error %j',
    async (cause) => {
      const { head, body, log } = await replyTo(cause)
      expect(head).toContain('HTTP/1.1 500 Internal Server Error')
      expect(JSON.parse(body)).toMatchObject({ error: { code: 'ADP_INTERNAL' } })
      expect(log).toContain(`"errorName":"${cause instanceof Error ? 'TypeError' : typeof cause}"`)
      expect(head + body + log).not.toContain('hush')
    },
  )

  it('logs the stack of an internal error that already has a code', async () => {
    const { log } = await replyTo(new AdapterError('ADP_INTERNAL', 'hush'))
    expect(log).toContain('"msg":"internal error"')
    expect(log).not.toContain('hush')
  })

  it('breaks off the reply if it has already begun', async () => {
    expect((await replyTo(new AdapterError('ADP_INTERNAL', 'x'), true)).body).toBe('begun')
  })
})
