import { describe, expect, it } from 'vitest'

import { type Config, ownershipChanges, parseConfig, Secret } from '../../src/config/index.ts'

const [one, two, three] = ['a', 'b', 'c'].map((digit) => digit.repeat(64))
const keys = (...subscriptionKeySha256: (string | undefined)[]): object => ({
  match: { subscriptionKeySha256 },
})
const header = (name: string, value: string): object => ({ match: { header: { name, value } } })
const path = (pathPrefix: string): object => ({ match: { pathPrefix } })
const auth = { mode: 'clientCredentials', tokenUrl: 'https://id.test/t', clientId: 'c', clientSecret: new Secret('s'), scope: 's' } // prettier-ignore

/** Partners `p0`, `p1` and so on; undefined: none of that name. */
function configOf(...partners: (object | undefined)[]): Config {
  return parseConfig({
    upstreams: { v3: { baseUrl: 'https://v3.test' } },
    partners: [
      ...partners.flatMap((partner, index) =>
        partner === undefined ? [] : [{ id: `p${index}`, ...partner }],
      ),
      { id: 'last', match: { header: { name: 'X-Last', value: 'yes' } } },
    ],
  })
}

describe('ownershipChanges', () => {
  const rows: [what: string, before: (object | undefined)[], after: (object | undefined)[], changes: string[]][] = [
    ['nothing', [keys(one), path('/a')], [keys(one), path('/a')], []],
    ['other settings', [keys(one)], [{ ...keys(one), layout: 'nested', v3: { budgetMs: 5 }, reads: { histories: true } }], []],
    ['a new partner, and another order', [keys(one), keys(two)], [keys(one), keys(two), keys(three)], []],
    ['one more key, and one less', [keys(one)], [keys(one, two)], []],
    ['the old key of a list is gone', [keys(one, two)], [keys(two)], []],
    ['all keys are others', [keys(one)], [keys(two)], ['p0 partners[0].match']],
    ['one key goes to another partner', [keys(one, two), keys(three)], [keys(two), keys(three, one)], ['p0 partners[0].match']],
    ['removed', [keys(one), keys(two)], [undefined, keys(two)], ['p0 partners']],
    ['another way to match', [keys(one)], [header('x', 'y')], ['p0 partners[0].match']],
    ['another value of a header', [header('x', 'y')], [header('x', 'z')], ['p0 partners[0].match']],
    ['another prefix', [path('/a')], [path('/b')], ['p0 partners[0].match']],
    ['other claims', [keys(one)], [{ ...keys(one), identity: { claims: ['iss'] } }], ['p0 partners[0].identity.claims']],
    ['tokens of its own', [keys(one)], [{ ...keys(one), v3: { auth } }], ['p0 partners[0].v3.auth.mode']],
  ] // prettier-ignore
  it.each(rows)('%s', (_what, before, after, expected) => {
    const changes = ownershipChanges(configOf(...before), configOf(...after))
    expect(changes.map(({ partner, target }) => `${partner} ${target}`)).toEqual(expected)
  })
})
