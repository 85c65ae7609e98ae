import type { IncomingMessage } from 'node:http'

import { expect, it } from 'vitest'

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
