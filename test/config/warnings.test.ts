import { describe, expect, it } from 'vitest'

import { parseConfig, Secret, warningsOf } from '../../src/config/index.ts'

const keys = [{ id: 'k1', key: new Secret('ab'.repeat(32)) }]
const shared = { url: 'postgres://db.test/journal' }
const secret = new Secret('s')
const auth = {
  mode: 'clientCredentials',
  tokenUrl: 'https://token.test',
  clientId: 'id',
  clientSecret: secret,
  scope: 's',
}
const header = { match: { header: { name: 'x-partner', value: 'a' } } }
const independent = { id: 'own', ...header, v3: { auth, subscriptionKey: secret } }
const dependent = { id: 'client', ...header, v3: { auth } }

describe('the warning about a missing journal key', () => {
  const rows: [what: string, journal: object, workers: number, partners: object[] | undefined, warnings: number][] = [
    ['instances that share a journal without a key', shared, 1, undefined, 1],
    ['workers that share a journal without a key', { url: 'sqlite:./journal.db' }, 4, undefined, 1],
    ['one instance whose journal is a file', { url: 'sqlite:./journal.db' }, 1, undefined, 0],
    ['no journal', { url: 'none' }, 1, undefined, 0],
    ['a shared journal with a key', { ...shared, keys }, 4, undefined, 0],
    ['partners for which the adapter has its own credentials', shared, 1, [independent], 0],
    ['one partner for which the adapter has no complete credentials', shared, 1, [independent, { ...dependent, match: { header: { name: 'x-partner', value: 'b' } } }], 1],
  ] // prettier-ignore
  it.each(rows)('is returned $4 time(s) for $0', (_what, journal, workers, partners, warnings) => {
    const upstreams = { v3: { baseUrl: 'http://v3.test' } }
    const config = parseConfig({ upstreams, journal, ...(partners === undefined ? {} : { partners }) })
    const found = warningsOf(config, workers, '2026-11-22')
    expect(found).toHaveLength(warnings)
    for (const text of found)
      expect(text).toMatch(/^journal\.keys is empty, .* Add a key to journal\.keys\.$/)
  })
})

describe('warningsOf', () => {
  const v2 = { baseUrl: 'http://v2.test' }
  const upstreams = { v2 }
  const [sqlite, kept] = [
    { url: 'sqlite:./journal.db', keys },
    { ...shared, keys, stateDir: '/var/lib/markbridge' },
  ]
  const own = { id: 'acme', match: { any: true }, stage: 'legacy', canary: { header: 'X-School' } }
  const partners = [own]
  const [stateDir, header] = ['journal.stateDir is not set', 'no canary.header']
  const rows: [what: string, sections: object, warnings: string[]][] = [
    ['warns about a PostgreSQL journal without stateDir if V2 has an address', { upstreams, partners }, [stateDir]],
    ['warns about a PostgreSQL journal without stateDir if only a partner has an address of V2', { partners: [{ ...own, v2 }] }, [stateDir]],
    ['returns no warning for a PostgreSQL journal with stateDir', { upstreams, partners, journal: kept }, []],
    ['returns no warning if V2 has no address', {}, []],
    ['returns no warning for SQLite, which stores stages beside its file', { upstreams, partners, journal: sqlite }, []],
    ['returns no warning for SQLite without keys', { upstreams, partners, journal: { url: sqlite.url } }, []],
    ['returns no warning for SQLite without keys if V2 has no address', { journal: { url: sqlite.url } }, []],
    ['returns no warning without a journal', { upstreams, partners, journal: { url: 'none' } }, []],
    ['warns at legacy if canary.header is not set', { upstreams, partners: [{ ...own, canary: {} }], journal: sqlite }, [header]],
    ['returns no warning at v3 if canary.header is not set', { upstreams, partners: [{ ...own, stage: 'v3', canary: {} }], journal: sqlite }, []],
  ] // prettier-ignore
  it.each(rows)('%s', (_what, sections, warnings) => {
    const { upstreams: more, ...rest } = sections as { upstreams?: object }
    const v3 = { baseUrl: 'http://v3.test' }
    const config = parseConfig({ journal: { ...shared, keys }, ...rest, upstreams: { v3, ...more } })
    const found = warningsOf(config, 1, '2026-11-22')
    expect(found.map((text) => warnings.find((words) => text.includes(words)) ?? text)).toEqual(warnings)
  })
})
