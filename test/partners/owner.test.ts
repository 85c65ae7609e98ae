import { createHash } from 'node:crypto'

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
const jwtOf = (text: string): string => jwt(Buffer.from(text).toString('base64url'))
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
    ['another partner', ownerOf(jwt(claims), 'key', { ...acme, id: 'other' })],
    ['another subscription key', ownerOf(jwt(claims), 'key-2')],
    ['another issuer', ownerOf(jwt({ ...claims, iss: 'https://other.test' }))],
    ['another client', ownerOf(jwt({ ...claims, client_id: 'app-2' }))],
    ['another organisation', ownerOf(jwt({ ...claims, organisation: 'school-2' }))],
    ['a missing claim', ownerOf(jwt({ iss: claims.iss, client_id: claims.client_id }))],
    ['an opaque token', ownerOf('bearer opaque')],
    ['another type of a claim', ownerOf(jwt({ ...claims, organisation: ['school-1'] }))],
  ]
  it.each(other)('differs for %s', (_what, owner) => {
    expect(owner).not.toBe(own)
    expect(owner).toMatch(/^[\w-]{43}$/)
  })

  it('is the same for all subscription keys of a partner', () => {
    expect(ownerOf(jwt(claims), 'old', listed)).toBe(ownerOf(jwt(claims), 'new', listed))
    expect(ownerOf('bearer x', 'old', listed)).not.toBe(ownerOf(jwt(claims), 'old', listed))
  })

  it('depends only on the partner if the adapter has its own tokens for the partner', () => {
    const tokens = { token: () => Promise.resolve('t'), renew: () => Promise.resolve('t') }
    const withTokens = { ...acme, tokens }
    const owners = [jwt(claims), 'bearer x'].flatMap((bearer) =>
      ['one', 'two'].map((key) => ownerOf(bearer, key, withTokens)),
    )
    expect(new Set(owners).size).toBe(1)
  })

  it('does not depend on the order of a list in a claim', () => {
    const of = (organisation: unknown): string => ownerOf(jwt({ ...claims, organisation }))
    expect(of(['a', 'b'])).toBe(of(['b', 'a']))
    expect(of(['a', 'b'])).not.toBe(of(['a,b']))
    expect(of(1)).not.toBe(of('1'))
  })

  const texts: [what: string, one: string, other: string][] = [
    ['numbers beyond 2^53', '9007199254740993', '9007199254740992'],
    ['a number beyond the range of doubles and null', '1e999', 'null'],
    ['numbers beyond the range of doubles', '1e999', '2e999'],
    ['objects', '{"id":"a"}', '{"id":"b"}'],
    ['an object and its text', '{"id":"a"}', JSON.stringify('{"id":"a"}')],
    ['lists of objects', '[{"id":"a"}]', '[{"id":"b"}]'],
    ['a list and its text', '["a"]', JSON.stringify('["a"]')],
  ]
  it.each(texts)('differs if the same claim of two tokens contains %s', (_what, one, other) => {
    for (const name of ['organisation', 'client_id']) {
      const of = (text: string): string => ownerOf(jwtOf(`{"iss":"idp","azp":"app","${name}":${text}}`))
      expect(of(one)).not.toBe(of(other))
    }
  })

  it('does not depend on how the token escapes a string claim', () => {
    const of = (text: string): string => ownerOf(jwtOf(`{"iss":"idp","client_id":"${text}"}`))
    expect(of('a/b')).toBe(of('a\\/\\u0062'))
  })

  const first = ['client_id', 'azp', 'appid', 'sub']
  it.each(first)('differs for another %s if the token has no other claim that names the client', (name) => {
    const of = (value: string) =>
      identify(acme, { authorization: jwt({ iss: 'idp', [name]: value }), subscriptionKey: 'key' })
    expect(of('app-A').owner).not.toBe(of('app-B').owner)
    expect(of('app-A').isNamed).toBe(true)
  })

  it('differs for another application of the same organisation, whichever claim names the application', () => {
    const of = (more: object): string => ownerOf(jwt({ iss: 'idp', organisation: 'school-1', ...more }))
    expect(of({ azp: 'app-A', sub: 'teacher' })).not.toBe(of({ azp: 'app-B', sub: 'teacher' }))
    expect(of({ azp: 'app-A', sub: 'teacher' })).toBe(of({ azp: 'app-A', sub: 'head' }))
  })

  it('depends on the configured claims, or on the claims that name a client if the token has no configured claim', () => {
    const byUnit = { ...acme, identityClaims: ['iss', 'unit'] }
    const of = (more: object): string => ownerOf(jwt({ iss: 'idp', ...more }), 'key', byUnit)
    expect(of({ unit: 'a', azp: 'app-A' })).toBe(of({ unit: 'a', azp: 'app-B' }))
    expect(of({ azp: 'app-A' })).not.toBe(of({ azp: 'app-B' }))
  })

  it('equals, for ordinary claims, the owner that earlier versions stored', () => {
    expect(own).toBe(
      createHash('sha256')
        .update(
          JSON.stringify([
            'acme',
            createHash('sha256').update('key').digest('base64url'),
            ['https://sts.test', 'app', 'school-1'],
          ]),
        )
        .digest('base64url'),
    )
  })
})

describe('identify, for the claims of a token', () => {
  const tokens: [what: string, claims: string][] = [
    ['only an issuer', '{"iss":"idp","aud":"v3","jti":"1"}'],
    ['empty claims', '{"iss":"idp","client_id":"","azp":null,"appid":[],"sub":{ }}'],
    ['no claims', '{}'],
    ['a repeated name', '{"iss":"idp","client_id":"app","client_id":"other"}'],
    ['a repeated name with an escape', '{"iss":"idp","client_id":"app","client\\u005fid":"other"}'],
    ['a repeated name in a nested claim', '{"iss":"idp","client_id":"app","more":{"a":1,"a":2}}'],
    ['text after its claims', '{"iss":"idp","client_id":"app"} {}'],
  ]
  it.each(tokens)('names no client if the token has %s', (_what, text) => {
    const identity = identify(acme, { authorization: jwtOf(text), subscriptionKey: 'key' })
    expect(identity.isNamed).toBe(false)
  })
})

describe('a hostile token', () => {
  const opaque = ownerOf('bearer opaque')
  const nested = `${'['.repeat(20_000)}${']'.repeat(20_000)}`
  const tokens: [what: string, authorization: string][] = [
    ['claims that are not JSON', jwt(Buffer.from('{"iss":').toString('base64url'))],
    ['claims that are not an object', jwt([1])],
    ['claims that are null', jwt(null)],
    ['claims that are not base64', jwt('***')],
    ['a claim that is not UTF-8', jwt(Buffer.from('{"client_id":"\xff"}', 'latin1').toString('base64url'))],
    ['claims that are not UTF-8', jwt(Buffer.from([0x7b, 0xff, 0x7d]).toString('base64url'))],
    ['five parts', 'Bearer a.b.c.d.e'],
    ['only dots', 'Bearer ..'],
    ['many dots', `Bearer ${'.'.repeat(60_000)}`],
    ['huge claims', jwt({ ...claims, more: 'x'.repeat(100_000) })],
    ['deep nesting', jwt(Buffer.from(`{"iss":${nested}}`).toString('base64url'))],
    ['a __proto__ member', jwt(Buffer.from('{"__proto__":{"iss":"x"}}').toString('base64url'))],
  ]
  it.each(tokens)('is treated as opaque if it has %s', (_what, authorization) => {
    const identity = identify(acme, { authorization, subscriptionKey: 'key' })
    expect(identity).toMatchObject({ owner: opaque, isNamed: false })
  })
})

it('identify returns the expiry time of a token, and a different hash for different credentials', () => {
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
