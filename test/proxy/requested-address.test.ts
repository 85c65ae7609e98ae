import type { IncomingMessage } from 'node:http'

import { describe, expect, it } from 'vitest'

import {
  isIssuedTo,
  serviceRoot,
  takeSideMarker,
  V2_LINK_SEGMENT,
  v3LinkSegment,
} from '../../src/proxy/requested-address.ts'
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
])('serviceRoot turns the headers %j into the scheme %s', (headers, scheme) => {
  expect(serviceRoot(request(['Host', 'a.test:1', ...headers]), '/x')).toBe(`${scheme}://a.test:1/x`)
})

const secret = Buffer.from('synthetic secret of this test')
const segment = v3LinkSegment(secret, 'owner')

describe('takeSideMarker', () => {
  it.each([
    [`${V2_LINK_SEGMENT}/a/V2/x?$skip=1`, 'v2', '/a/V2/x?$skip=1'],
    ['/%7Ev2/V2/x', 'v2', '/V2/x'],
    ['/%7eV2/V2/x?x', 'v2', '/V2/x?x'],
    ['/~v2', undefined, '/~v2'],
    ['/~v2?/V2/x', undefined, '/~v2?/V2/x'],
    ['/~v2/metrics', undefined, '/~v2/metrics'],
    ['/%7ev2/readyz?a=/V2/x', undefined, '/%7ev2/readyz?a=/V2/x'],
    ['http://adapter.test/~v2/healthz', undefined, 'http://adapter.test/~v2/healthz'],
    [`${segment}/metrics`, undefined, `${segment}/metrics`],
    ['http://adapter.test:80/~v2/V2/x', 'v2', 'http://adapter.test:80/V2/x'],
    ['/~v2/~v2/V2/x', 'v2', '/~v2/V2/x'],
    ['/~v2//V2/x', 'v2', '//V2/x'],
    [`${segment}/a/V2/x?$skiptoken=1`, 'v3', '/a/V2/x?$skiptoken=1'],
    ['/~v3/x', undefined, '/~v3/x'],
    ['/~v3.short/x', undefined, '/~v3.short/x'],
    ['/V2/x', undefined, '/V2/x'],
    ['/~v22/x', undefined, '/~v22/x'],
    ['/a/~v2/x', undefined, '/a/~v2/x'],
    ['/V2/x?u=http://h/~v2/', undefined, '/V2/x?u=http://h/~v2/'],
    ['http://h?/~v2/x', undefined, 'http://h?/~v2/x'],
    ['*', undefined, '*'],
    ['', undefined, ''],
  ])('finds the marker /~v2 or /~v3 at the start of the target %j, if there is one', (url, side, rest) => {
    const request = incomingMessage({ url })
    expect([takeSideMarker(request)?.side, request.url]).toEqual([side, rest])
  })
})

describe('isIssuedTo', () => {
  const markerOf = (url: string) => takeSideMarker(incomingMessage({ url })) ?? { side: 'v2', proof: '' }

  it('accepts a link of V3 only from the owner who received the link', () => {
    const marker = markerOf(`${segment}/V2/x`)
    expect(isIssuedTo(marker, () => secret, 'owner')).toBe(true)
    expect(isIssuedTo(marker, () => secret, 'other')).toBe(false)
    expect(isIssuedTo(marker, () => Buffer.from('another secret'), 'owner')).toBe(false)
    expect(isIssuedTo(markerOf('/~v3.aaaaaaaaaaaaaaaaaaaaaa/V2/x'), () => secret, 'owner')).toBe(false)
  })
})
