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
/** A JWT with this text as its claim set. */
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

  it('takes a list in any order', () => {
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
  it.each(texts)('is another for different %s in a claim', (_what, one, other) => {
    for (const name of ['organisation', 'client_id']) {
      const of = (text: string): string => ownerOf(jwtOf(`{"iss":"idp","azp":"app","${name}":${text}}`))
      expect(of(one)).not.toBe(of(other))
    }
  })

  it('is the same however a string is escaped', () => {
    const of = (text: string): string => ownerOf(jwtOf(`{"iss":"idp","client_id":"${text}"}`))
    expect(of('a/b')).toBe(of('a\\/\\u0062'))
  })

  const first = ['client_id', 'azp', 'appid', 'sub']
  it.each(first)('is another for another %s where no claim before it names the client', (name) => {
    const of = (value: string) =>
      identify(acme, { authorization: jwt({ iss: 'idp', [name]: value }), subscriptionKey: 'key' })
    expect(of('app-A').owner).not.toBe(of('app-B').owner)
    expect(of('app-A').isNamed).toBe(true)
  })

  it('is another for another application of one organisation, whichever claim names it', () => {
    const of = (more: object): string => ownerOf(jwt({ iss: 'idp', organisation: 'school-1', ...more }))
    expect(of({ azp: 'app-A', sub: 'teacher' })).not.toBe(of({ azp: 'app-B', sub: 'teacher' }))
    expect(of({ azp: 'app-A', sub: 'teacher' })).toBe(of({ azp: 'app-A', sub: 'head' }))
  })

  it('follows the claims that are configured, and names a client by others where a token has none of them', () => {
    const byUnit = { ...acme, identityClaims: ['iss', 'unit'] }
    const of = (more: object): string => ownerOf(jwt({ iss: 'idp', ...more }), 'key', byUnit)
    expect(of({ unit: 'a', azp: 'app-A' })).toBe(of({ unit: 'a', azp: 'app-B' }))
    expect(of({ azp: 'app-A' })).not.toBe(of({ azp: 'app-B' }))
  })

  it('has been the same for ordinary claims since before claims were compared by their texts', () => {
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

describe('a token that names no client', () => {
  const tokens: [what: string, claims: string][] = [
    ['the issuer alone', '{"iss":"idp","aud":"v3","jti":"1"}'],
    ['empty claims', '{"iss":"idp","client_id":"","azp":null,"appid":[],"sub":{ }}'],
    ['no claim', '{}'],
    ['a repeated name', '{"iss":"idp","client_id":"app","client_id":"other"}'],
    ['a name that is repeated in other letters', '{"iss":"idp","client_id":"app","client\\u005fid":"other"}'],
    ['a repeated name in a nested claim', '{"iss":"idp","client_id":"app","more":{"a":1,"a":2}}'],
    ['text after its claims', '{"iss":"idp","client_id":"app"} {}'],
  ]
  it.each(tokens)('has %s', (_what, text) => {
    const identity = identify(acme, { authorization: jwtOf(text), subscriptionKey: 'key' })
    expect(identity.isNamed).toBe(false)
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
    ['no UTF-8 in a claim', jwt(Buffer.from('{"client_id":"\xff"}', 'latin1').toString('base64url'))],
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
