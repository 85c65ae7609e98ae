import type { IncomingMessage } from 'node:http'

import { describe, expect, it } from 'vitest'

import { createSlicing } from '../../src/http/slices.ts'
import { createByteBudget } from '../../src/proxy/byte-budget.ts'
import { soleQueue } from '../../src/upstream/index.ts'
import { readRequestBody } from '../../src/proxy/read-request-body.ts'
import { serviceRoot } from '../../src/proxy/requested-address.ts'
import { incomingMessage } from '../support/incoming-message.ts'

function request(rawHeaders: readonly string[]): IncomingMessage {
  const pairs = rawHeaders.flatMap((name, at) =>
    at % 2 === 0 ? [[name.toLowerCase(), rawHeaders[at + 1]] as const] : [],
  )
  return incomingMessage({ rawHeaders, headers: Object.fromEntries(pairs) })
}

it.each([
  [[], 'http'],
  [['X-Forwarded-Proto', 'https'], 'https'],
  [['X-Forwarded-Proto', 'javascript'], 'http'],
])('serviceRoot with %j is %s', (headers, scheme) => {
  expect(serviceRoot(request(['Host', 'a.test:1', ...headers]), '/x')).toBe(`${scheme}://a.test:1/x`)
})

describe('readRequestBody', () => {
  const slices = createSlicing().open()
  const body = (...chunks: string[]): IncomingMessage => incomingMessage({ body: chunks })

  it('takes its bytes from the budget and leaves them to the caller to release', async () => {
    const budget = createByteBudget(10)
    const held = budget.open(soleQueue)
    const bytes = await readRequestBody(body('abc', 'def'), 100, held, slices)
    expect([bytes.toString(), budget.held()]).toEqual(['abcdef', 6])
    held.release()
    expect(budget.held()).toBe(0)
  })

  it.each([
    ['the budget', 100, 5, 'ADP_OVERLOADED'],
    ['the limit', 5, 100, 'ADP_TOO_LARGE'],
  ])('takes no more when %s refuses it', async (_name, maxBytes, maxHeld, code) => {
    const budget = createByteBudget(maxHeld)
    const reading = readRequestBody(body('abc', 'def'), maxBytes, budget.open(soleQueue), slices)
    await expect(reading).rejects.toMatchObject({ code })
    expect(budget.held()).toBe(3)
  })
})
