import type { IncomingMessage } from 'node:http'

import { describe, expect, it } from 'vitest'

import { AdapterError } from '../../src/errors.ts'
import { checkHost, hostName } from '../../src/http/address.ts'

function request(rawHeaders: readonly string[]): Pick<IncomingMessage, 'headers' | 'rawHeaders'> {
  const pairs = rawHeaders.flatMap((name, at) =>
    at % 2 === 0 ? [[name.toLowerCase(), rawHeaders[at + 1]] as const] : [],
  )
  return { rawHeaders: [...rawHeaders], headers: Object.fromEntries(pairs) }
}

describe('checkHost', () => {
  it.each([
    'a',
    'A.example:80',
    '127.0.0.1:8080',
    '[::1]',
    '[2001:db8::1]:443',
    'under_score',
    'a:',
    'x-1.test',
    `${'a'.repeat(255)}:65535`,
  ])('accepts the Host header %s', (host) => {
    expect(checkHost(request(['X', 'y', 'HOST', host]))).toBe(host)
  })

  it.each([
    [[]], [['Host', '']], [['Host', 'a', 'host', 'a']], [['Host', 'a', 'Host', 'b']],
    ...['a b', 'a/b', 'a\\b', 'u@a', 'a?b', 'a#b', 'a"b', 'a<b', 'a:b', 'a:123456', '::1', '[::1', '[x]', 'caf\u00e9', 'a,b', 'a\tb', 'a'.repeat(262)].map((host) => [['Host', host]]),
  ])('refuses the Host headers %j (RFC 9112 3.2)', (headers) => {
    expect(() => checkHost(request(headers))).toThrow(AdapterError)
  }) // prettier-ignore
})

it.each([
  ['A.test:80', 'a.test'],
  ['[::1]:80', '[::1]'],
  ['[::1]', '[::1]'],
  ['a:', 'a'],
])('hostName turns the Host header %s into the name %s', (host, name) => {
  expect(hostName(host)).toBe(name)
})
