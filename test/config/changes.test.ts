import { describe, expect, it } from 'vitest'

import { type Config, ownershipChanges, parseConfig, Secret } from '../../src/config/index.ts'
import { planReload } from '../../src/config/changes.ts'

const key = (id: string, v3: object = {}): object => ({
  id,
  match: { subscriptionKeySha256: id.repeat(64) },
  v3,
})

function configOf(partners: readonly object[], sections: object = {}): Config {
  return parseConfig({ upstreams: { v3: { baseUrl: 'https://v3.test' } }, partners, ...sections })
}

describe('planReload', () => {
  const running = configOf([key('a'), key('b', { subscriptionKey: new Secret('one') }), key('c')])

  it('reports no change if the configuration is unchanged', () => {
    const same = configOf([key('a'), key('b', { subscriptionKey: new Secret('one') }), key('c')])
    expect(planReload(running, same).changes).toEqual({
      added: [],
      removed: [],
      changed: [],
      needsRestart: [],
    })
  })

  it('names the partners that were added, removed or changed, even if only a secret changed', () => {
    const next = configOf([key('d'), key('b', { subscriptionKey: new Secret('other') }), key('a')])
    expect(planReload(running, next).changes).toEqual({
      added: ['d'],
      removed: ['c'],
      changed: ['b'],
      needsRestart: [],
    })
  })

  it('keeps the current value of a setting that needs a restart to change, and names the setting', () => {
    const next = configOf([key('a')], {
      listen: { port: 9999, drainMs: 1 },
      journal: { keys: [{ id: 'k1', key: new Secret('ab'.repeat(32)) }] },
      passThrough: { rewriteLinks: false },
      limits: { maxParts: 7 },
    })
    const { config, changes } = planReload(running, next)
    expect(changes.needsRestart).toEqual([
      'listen.port',
      'listen.drainMs',
      'journal.keys[0]',
      'passThrough.rewriteLinks',
    ])
    expect(config).toEqual({ ...running, partners: next.partners, limits: next.limits })
  })

  it('refuses a new address of V3, because new credentials would be sent to the old address', () => {
    const next = parseConfig({ upstreams: { v3: { baseUrl: 'https://v3.test/other' } } })
    expect(() => planReload(running, next)).toThrow(
      expect.objectContaining({
        code: 'ADP_CONFIGURATION',
        details: [expect.objectContaining({ code: 'reload', target: 'upstreams.v3.baseUrl' })],
      }),
    )
  })

  it('accepts each step back of a stage, but a step forward only without a journal', () => {
    const at = (stage: string, url = 'sqlite:./x.db') =>
      parseConfig({
        upstreams: { v3: { baseUrl: 'https://v3.test' }, v2: { baseUrl: 'https://v2.test' } },
        journal: { url },
        partners: [{ id: 'acme', match: { any: true }, stage }],
      })
    expect(() => planReload(at('legacy'), at('v3'))).toThrow('partners[0].stage: partner acme is at legacy')
    expect(planReload(at('v3'), at('legacy')).changes.changed).toEqual(['acme'])
    expect(planReload(at('legacy', 'none'), at('v3', 'none')).changes.changed).toEqual(['acme'])
  })
})

const [one, two, three] = ['a', 'b', 'c'].map((digit) => digit.repeat(64))
const keys = (...subscriptionKeySha256: (string | undefined)[]): object => ({
  match: { subscriptionKeySha256 },
})
const header = (name: string, value: string): object => ({ match: { header: { name, value } } })
const path = (pathPrefix: string): object => ({ match: { pathPrefix } })
const auth = { mode: 'clientCredentials', tokenUrl: 'https://id.test/t', clientId: 'c', clientSecret: new Secret('s'), scope: 's' } // prettier-ignore

/** Creates a configuration with the partners `p0`, `p1` and so on, and the partner `last`. Leaves out a partner that is `undefined`. */
function ownersOf(...partners: (object | undefined)[]): Config {
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
    ['allows an unchanged configuration', [keys(one), path('/a')], [keys(one), path('/a')], []],
    ['allows changes that do not concern the owner', [keys(one)], [{ ...keys(one), layout: 'nested', v3: { budgetMs: 5 }, reads: { histories: true } }], []],
    ['allows a new partner at the end of the list', [keys(one), keys(two)], [keys(one), keys(two), keys(three)], []],
    ['allows an additional subscription key', [keys(one)], [keys(one, two)], []],
    ['allows the removal of an old subscription key from a list', [keys(one, two)], [keys(two)], []],
    ['reports a partner whose subscription keys are all replaced', [keys(one)], [keys(two)], ['p0 partners[0].match']],
    ['reports a subscription key that moves to another partner', [keys(one, two), keys(three)], [keys(two), keys(three, one)], ['p0 partners[0].match']],
    ['reports a removed partner', [keys(one), keys(two)], [undefined, keys(two)], ['p0 partners']],
    ['reports a partner that is matched in another way', [keys(one)], [header('x', 'y')], ['p0 partners[0].match']],
    ['reports a partner with another header value', [header('x', 'y')], [header('x', 'z')], ['p0 partners[0].match']],
    ['reports a partner with another path prefix', [path('/a')], [path('/b')], ['p0 partners[0].match']],
    ['reports a partner with other identity claims', [keys(one)], [{ ...keys(one), identity: { claims: ['iss'] } }], ['p0 partners[0].identity.claims']],
    ['reports a partner whose tokens the adapter fetches from now on', [keys(one)], [{ ...keys(one), v3: { auth } }], ['p0 partners[0].v3.auth.mode']],
  ] // prettier-ignore
  it.each(rows)('%s', (_what, before, after, expected) => {
    const changes = ownershipChanges(ownersOf(...before), ownersOf(...after))
    expect(changes.map(({ partner, target }) => `${partner} ${target}`)).toEqual(expected)
  })
})
