import { describe, expect, it } from 'vitest'

import { Secret } from '../../src/config/index.ts'
import { faultsOf, upstreams } from './faults.ts'

const one = 'aa'.repeat(32)
const two = 'bb'.repeat(32)
const header = (name: string, value: string | Secret): object => ({ header: { name, value } })
const hashes = (subscriptionKeySha256: string | string[]): object => ({ subscriptionKeySha256 })

const matchFaults = (...matches: readonly object[]): readonly string[] =>
  faultsOf({ upstreams, partners: matches.map((match, index) => ({ id: `p${index}`, match })) })

function faulty(matches: readonly object[]): number[] {
  return matchFaults(...matches).map((fault) => Number(/\d+/.exec(fault)?.[0]))
}

describe('the check for partners that no request reaches', () => {
  const rows: [what: string, matches: object[], faulty: number[]][] = [
    ['finds every partner after a partner that matches any request', [{ any: true }, hashes(one), header('X', 'a'), { pathPrefix: '/a' }, { any: true }], [1, 2, 3, 4]],
    ['finds every partner after the prefix /', [{ pathPrefix: '/' }, hashes(one), { any: true }], [1, 2]],
    ['finds a prefix below an earlier prefix', [{ pathPrefix: '/a' }, { pathPrefix: '/a/b' }, { pathPrefix: '/A/' }, { pathPrefix: '/ab' }], [1, 2]],
    ['accepts a prefix before a shorter prefix', [{ pathPrefix: '/a/b' }, { pathPrefix: '/a' }], []],
    ['finds a repeated hash in any case', [hashes(one), hashes(one.toUpperCase()), hashes(two)], [1]],
    ['finds a list of hashes that all occur earlier', [hashes([one]), hashes([two]), hashes([two, one])], [2]],
    ['finds a list with one hash that occurs earlier', [hashes(one), hashes([two, one])], [1]],
    ['finds a repeated header whose name differs only in case', [header('X-P', 'a'), header('x-p', 'a'), header('x-p', 'A'), header('y', 'a')], [1]],
    ['finds a repeated header whose value is a secret', [header('X-P', new Secret('a')), header('x-p', 'a')], [1]],
    ['accepts partners that match different requests', [hashes(one), header('X', 'a'), { pathPrefix: '/a' }, { any: true }], []],
  ] // prettier-ignore
  it.each(rows)('%s', (_what, matches, expected) => {
    expect(faulty(matches)).toEqual(expected)
  })

  it('names the earlier partners that receive all requests of the unreachable partner', () => {
    expect(matchFaults(hashes([one]), { any: true }, hashes([two, one]))).toEqual([
      'partners[2].match: matches requests that already go to partners[0] and partners[1]',
    ])
  })

  it.each(['/a/../b', '/a//b', '/a%20b', '/a;x', '/a?b', '/a#b', '/a. ', '/a\\b', '//a'])(
    'refuses the prefix %s, because no request path has this form',
    (pathPrefix) => {
      expect(faulty([{ pathPrefix }])).toEqual([0])
    },
  )

  it.each(['/', '/a', '/a/', '/a b/c', '/caf\u00e9'])(
    'accepts the prefix %s, because request paths can have this form',
    (pathPrefix) => {
      expect(faulty([{ pathPrefix }])).toEqual([])
    },
  )
})

describe('the check of the console section', () => {
  const operator = { name: 'ann', role: 'operator', tokenSha256: one }
  const identity = { header: 'X-User' }
  it.each([
    [{ host: '10.0.0.5' }, [], ['console.host: is reachable from other machines. List the operators in rollout.operators']],
    [{ identity, trustedProxies: ['10.0.0.2'] }, [], ['console.identity: requires operators, but rollout.operators is empty']],
    [{ identity }, [operator], ['console.identity: has no effect, because console.trustedProxies is empty']],
    [{ identity, host: '10.0.0.5', trustedProxies: ['10.0.0.2'] }, [operator], []],
  ])('reports the conflicts of %j if rollout.operators is %j', (given, operators, expected) => {
    const partners = [{ id: 'acme', match: hashes(two) }]
    expect(faultsOf({ upstreams, partners, console: { port: 8081, ...given }, rollout: { operators } })).toEqual(expected)
  }) // prettier-ignore
})
