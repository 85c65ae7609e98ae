import { describe, expect, it } from 'vitest'

import { identify, type OwnerRules } from '../../src/partners/owner.ts'

const acme: OwnerRules = {
  id: 'acme',
  match: { any: true },
  identityClaims: ['iss', 'client_id', 'organisation'],
  tokens: undefined,
  unit: { claim: 'organisation' },
}
const listed: OwnerRules = { ...acme, match: { subscriptionKeySha256: ['aa', 'bb'] } }
const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')
const jwt = (claims: unknown, signature = 'c2ln'): string =>
  `Bearer ${encode({ alg: 'RS256' })}.${typeof claims === 'string' ? claims : encode(claims)}.${signature}`
const claims = { iss: 'https://sts.test', client_id: 'app', organisation: 'school-1', sub: 'teacher' }

function ownerOf(authorization: string, key = 'key', rules = acme): string {
  return identify(rules, { authorization, subscriptionKey: key }).owner
}

describe('the owner of a batch', () => {
  const own = ownerOf(jwt(claims))
  const same: [what: string, owner: string][] = [
    ['a renewed token', ownerOf(jwt({ ...claims, exp: 2_000_000_000, jti: '2' }, 'b3RoZXI'))],
    ['another user of the same client', ownerOf(jwt({ ...claims, sub: 'head' }))],
    ['another spelling of the scheme', ownerOf(jwt(claims).replace('Bearer', 'bearer  '))],
  ]
  it.each(same)('is the same for %s', (_what, owner) => {
    expect(owner).toBe(own)
  })

  const other: [what: string, owner: string][] = [
    ['partner', ownerOf(jwt(claims), 'key', { ...acme, id: 'other' })],
    ['subscription key', ownerOf(jwt(claims), 'key-2')],
    ['issuer', ownerOf(jwt({ ...claims, iss: 'https://other.test' }))],
    ['client', ownerOf(jwt({ ...claims, client_id: 'app-2' }))],
    ['organisation', ownerOf(jwt({ ...claims, organisation: 'school-2' }))],
    ['claim that is missing', ownerOf(jwt({ iss: claims.iss, client_id: claims.client_id }))],
    ['opaque token', ownerOf('bearer opaque')],
    ['type of a claim', ownerOf(jwt({ ...claims, organisation: ['school-1'] }))],
  ]
  it.each(other)('is another for another %s', (_what, owner) => {
    expect(owner).not.toBe(own)
    expect(owner).toMatch(/^[\w-]{43}$/)
  })

  it('is one for all keys that a partner lists', () => {
    expect(ownerOf(jwt(claims), 'old', listed)).toBe(ownerOf(jwt(claims), 'new', listed))
    expect(ownerOf('bearer x', 'old', listed)).not.toBe(ownerOf(jwt(claims), 'old', listed))
  })

  it('is the partner with client credentials, whatever the client shows', () => {
    const tokens = { token: () => Promise.resolve('t'), renew: () => Promise.resolve('t') }
    const withTokens = { ...acme, tokens }
    const owners = [jwt(claims), 'bearer x'].flatMap((bearer) =>
      ['one', 'two'].map((key) => ownerOf(bearer, key, withTokens)),
    )
    expect(new Set(owners).size).toBe(1)
  })

  it('takes a list in any order, and leaves nested claims out', () => {
    const of = (organisation: unknown): string => ownerOf(jwt({ ...claims, organisation }))
    expect(of(['a', 'b'])).toBe(of(['b', 'a']))
    expect(of(['a', 'b'])).not.toBe(of(['a,b']))
    expect(of({ id: 'a' })).toBe(of({ id: 'b' }))
    expect(of({ id: 'a' })).toBe(of(undefined))
    expect(of(1)).not.toBe(of('1'))
  })
})

describe('a hostile token', () => {
  const opaque = ownerOf('bearer opaque')
  const nested = `${'['.repeat(20_000)}${']'.repeat(20_000)}`
  const tokens: [what: string, authorization: string][] = [
    ['no JSON', jwt(Buffer.from('{"iss":').toString('base64url'))],
    ['no object', jwt([1])],
    ['null', jwt(null)],
    ['no base64', jwt('***')],
    ['no UTF-8', jwt(Buffer.from([0x7b, 0xff, 0x7d]).toString('base64url'))],
    ['five parts', 'Bearer a.b.c.d.e'],
    ['dots alone', 'Bearer ..'],
    ['many dots', `Bearer ${'.'.repeat(60_000)}`],
    ['a huge one', jwt({ ...claims, more: 'x'.repeat(100_000) })],
    ['nesting', jwt(Buffer.from(`{"iss":${nested}}`).toString('base64url'))],
    ['a prototype', jwt(Buffer.from('{"__proto__":{"iss":"x"}}').toString('base64url'))],
  ]
  it.each(tokens)('with %s counts as an opaque one', (_what, authorization) => {
    const identity = identify(acme, { authorization, subscriptionKey: 'key' })
    expect(identity).toMatchObject({ owner: opaque, isNamed: false })
  })
})

it('knows when a token ends, and tells credentials apart without keeping them', () => {
  const of = (authorization: string, subscriptionKey = 'key') =>
    identify(acme, { authorization, subscriptionKey })
  expect(of(jwt({ ...claims, exp: 1_800_000_000 }))).toMatchObject({
    isNamed: true,
    expiresMs: 1_800_000_000_000,
  })
  expect(of(jwt({ ...claims, exp: 'soon' })).expiresMs).toBeUndefined()
  const hashes = [of('bearer a'), of('bearer b'), of('bearer a', 'key-2')].map(
    ({ credentialsHash }) => credentialsHash,
  )
  expect(new Set(hashes).size).toBe(3)
})
