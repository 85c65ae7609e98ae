import { describe, expect, it } from 'vitest'

import { type Config, parseConfig, Secret } from '../../src/config/index.ts'
import { planReload } from '../../src/config/changes.ts'
import { AdapterError } from '../../src/errors.ts'

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

  it('finds nothing in the same file', () => {
    const same = configOf([key('a'), key('b', { subscriptionKey: new Secret('one') }), key('c')])
    expect(planReload(running, same).changes).toEqual({
      added: [],
      removed: [],
      changed: [],
      needsRestart: [],
    })
  })

  it('names partners that were added, removed or changed, also where only a secret is another', () => {
    const next = configOf([key('d'), key('b', { subscriptionKey: new Secret('other') }), key('a')])
    expect(planReload(running, next).changes).toEqual({
      added: ['d'],
      removed: ['c'],
      changed: ['b'],
      needsRestart: [],
    })
  })

  it('keeps what needs a restart as it is in use, and names it', () => {
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

  it('refuses another address of V3, since keys of partners would go to the old one', () => {
    const next = parseConfig({ upstreams: { v3: { baseUrl: 'https://v3.test/other' } } })
    const error = ((): unknown => {
      try {
        return planReload(running, next)
      } catch (cause) {
        return cause
      }
    })()
    expect(error).toBeInstanceOf(AdapterError)
    expect(error).toMatchObject({
      code: 'ADP_CONFIGURATION',
      details: [
        { code: 'reload', target: 'upstreams.v3.baseUrl', message: 'needs a restart when it changes' },
      ],
    })
  })

  it('refuses a step forward, which has to drain, but takes one back, and any without a journal', () => {
    const at = (stage: string, url = 'sqlite:./x.db') =>
      parseConfig({
        upstreams: { v3: { baseUrl: 'https://v3.test' }, v2: { baseUrl: 'https://v2.test' } },
        journal: { url },
        partners: [{ id: 'acme', match: { any: true }, stage }],
      })
    expect(() => planReload(at('legacy'), at('v3'))).toThrow(
      'partners[0].stage: partner acme is at legacy: markbridge rollout set takes it forward, a reload does not',
    )
    expect(planReload(at('v3'), at('legacy')).changes.changed).toEqual(['acme'])
    expect(planReload(at('legacy', 'none'), at('v3', 'none')).changes.changed).toEqual(['acme'])
  })
})
