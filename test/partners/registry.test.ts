import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'

import { describe, expect, it } from 'vitest'

import { createRegistry, longestReadBackMs } from '../../src/partners/registry.ts'
import { incomingMessage } from '../support/incoming-message.ts'
import { partner } from './partner.ts'

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

function request(url: string, headers: Record<string, string> = {}): IncomingMessage {
  return incomingMessage({ url, headers })
}

describe('the partner registry, for a request', () => {
  it('finds the first partner in the list that matches, whether by hash, header, path or any', () => {
    const ways = [
      partner('path', { pathPrefix: '/acme' }),
      partner('hash', { subscriptionKeySha256: [sha256('key')] }),
      partner('header', { header: { name: 'X-Partner', value: 'one' } }),
      partner('any', { any: true }),
    ]
    const asking = request('/acme/V2', { 'x-partner': 'one' })
    const order = ways.map((_, count) => createRegistry(ways.slice(count)).find(asking, 'key')?.id)
    expect(order).toEqual(['path', 'hash', 'header', 'any'])
    const backwards = ways.map(
      (_, count) => createRegistry(ways.toReversed().slice(count)).find(asking, 'key')?.id,
    )
    expect(backwards).toEqual(['any', 'header', 'hash', 'path'])
  })

  it('finds the first partner in the list whose prefix matches the path', () => {
    const prefixes = ['/a/b', '/a', '/', '/c/d/e'].map((pathPrefix) => partner(pathPrefix, { pathPrefix }))
    const { find } = createRegistry(prefixes)
    const idOf = (url: string): string | undefined => find(request(url), '')?.id
    expect(['/a/b/c/d/e/f', '/A/B', '/a/bc', '/a', '/c/d', '/c/d/e', '/'].map(idOf)).toEqual([
      '/a/b',
      '/a/b',
      '/a',
      '/a',
      '/',
      '/',
      '/',
    ])
    expect(createRegistry(prefixes.slice(0, 2)).find(request('/b'), '')).toBeUndefined()
    expect(createRegistry(prefixes.slice(3)).find(request(`/c/d/e${'/x'.repeat(4_000)}`), '')?.id).toBe(
      '/c/d/e',
    )
  })
})

describe('the partner registry, after its partners were replaced', () => {
  const [old, kept, removed] = [partner('a', { any: true }), partner('b', { pathPrefix: '/b' }), partner('c', { pathPrefix: '/c' })] // prettier-ignore

  it('returns the new partners for new requests, and the newest partner for each id', () => {
    const registry = createRegistry([removed, kept, old])
    const changed = { ...old, readBackAfterMs: [1, 2] }
    registry.replace([kept, changed])
    expect(registry.find(request('/c'), '')).toBe(changed)
    expect(registry.find(request('/b'), '')).toBe(kept)
    expect([registry.of('a'), registry.of('b'), registry.of('c'), registry.of('d')]).toEqual([
      changed,
      kept,
      removed,
      undefined,
    ])
    expect(registry.partners()).toEqual([kept, changed])
    expect([longestReadBackMs(registry, 'c'), longestReadBackMs(registry, 'd')]).toEqual([0, 3])
  })

  it('counts the requests in progress of each partner separately for previous and current settings', () => {
    const registry = createRegistry([removed, kept, old])
    const leave = [registry.enter(old), registry.enter(kept), registry.enter(removed), registry.enter(kept)]
    registry.replace([kept, { ...old }])
    const leaveNew = registry.enter(registry.partners()[1] ?? old)
    expect(registry.underWay()).toEqual([
      { partner: 'a', revision: 'previous', requests: 1 },
      { partner: 'b', revision: 'current', requests: 2 },
      { partner: 'c', revision: 'previous', requests: 1 },
      { partner: 'a', revision: 'current', requests: 1 },
    ])
    // Calls each function twice, because the second call must have no effect.
    for (const end of [...leave, ...leave]) end()
    expect(registry.underWay()).toEqual([{ partner: 'a', revision: 'current', requests: 1 }])
    leaveNew()
    expect(registry.underWay()).toEqual([])
  })
})
