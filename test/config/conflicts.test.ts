import { describe, expect, it } from 'vitest'

import { Secret } from '../../src/config/index.ts'
import { faultsOf, upstreams } from './faults.ts'

const one = 'aa'.repeat(32)
const two = 'bb'.repeat(32)
const header = (name: string, value: string | Secret): object => ({ header: { name, value } })
const hashes = (subscriptionKeySha256: string | string[]): object => ({ subscriptionKeySha256 })

/** The faults of partners with these ways to match. */
const matchFaults = (...matches: readonly object[]): readonly string[] =>
  faultsOf({ upstreams, partners: matches.map((match, index) => ({ id: `p${index}`, match })) })

/** Indexes of the partners that have a fault. */
function faulty(matches: readonly object[]): number[] {
  return matchFaults(...matches).map((fault) => Number(/\d+/.exec(fault)?.[0]))
}

describe('a partner whose requests an earlier one takes', () => {
  const rows: [what: string, matches: object[], faulty: number[]][] = [
    ['after any', [{ any: true }, hashes(one), header('X', 'a'), { pathPrefix: '/a' }, { any: true }], [1, 2, 3, 4]],
    ['after the prefix of all', [{ pathPrefix: '/' }, hashes(one), { any: true }], [1, 2]],
    ['under an earlier prefix', [{ pathPrefix: '/a' }, { pathPrefix: '/a/b' }, { pathPrefix: '/A/' }, { pathPrefix: '/ab' }], [1, 2]],
    ['a prefix before the one around it', [{ pathPrefix: '/a/b' }, { pathPrefix: '/a' }], []],
    ['the same hash, in any case', [hashes(one), hashes(one.toUpperCase()), hashes(two)], [1]],
    ['a list of hashes that are all taken', [hashes([one]), hashes([two]), hashes([two, one])], [2]],
    ['a list with one that is taken', [hashes(one), hashes([two, one])], [1]],
    ['the same header, its name in any case', [header('X-P', 'a'), header('x-p', 'a'), header('x-p', 'A'), header('y', 'a')], [1]],
    ['the same header, its value from a secret', [header('X-P', new Secret('a')), header('x-p', 'a')], [1]],
    ['ways that differ', [hashes(one), header('X', 'a'), { pathPrefix: '/a' }, { any: true }], []],
  ] // prettier-ignore
  it.each(rows)('%s', (_what, matches, expected) => {
    expect(faulty(matches)).toEqual(expected)
  })

  it('shows which partners match first', () => {
    expect(matchFaults(hashes([one]), { any: true }, hashes([two, one]))).toEqual([
      'partners[2].match: matches requests that go to partners[0] and partners[1] first',
    ])
  })

  it.each(['/a/../b', '/a//b', '/a%20b', '/a;x', '/a?b', '/a#b', '/a. ', '/a\\b', '//a'])(
    'a prefix that no path has: %s',
    (pathPrefix) => {
      expect(faulty([{ pathPrefix }])).toEqual([0])
    },
  )

  it.each(['/', '/a', '/a/', '/a b/c', '/caf\u00e9'])('a prefix that paths have: %s', (pathPrefix) => {
    expect(faulty([{ pathPrefix }])).toEqual([])
  })
})

describe('a console', () => {
  const operator = { name: 'ann', role: 'operator', tokenSha256: one }
  const identity = { header: 'X-User' }
  it.each([
    [{ host: '10.0.0.5' }, [], ['console.host: is beyond loopback: rollout.operators has to name who may enter']],
    [{ identity, trustedProxies: ['10.0.0.2'] }, [], ['console.identity: names operators, and rollout.operators has none']],
    [{ identity }, [operator], ['console.identity: has no effect: console.trustedProxies is empty']],
    [{ identity, host: '10.0.0.5', trustedProxies: ['10.0.0.2'] }, [operator], []],
  ])('%j with operators %j', (given, operators, expected) => {
    const partners = [{ id: 'acme', match: hashes(two) }]
    expect(faultsOf({ upstreams, partners, console: { port: 8081, ...given }, rollout: { operators } })).toEqual(expected)
  }) // prettier-ignore
})
