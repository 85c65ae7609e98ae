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

describe('warningsOf', () => {
  const rows: [what: string, journal: object, workers: number, partners: object[] | undefined, warnings: number][] = [
    ['instances that share a journal without a key', shared, 1, undefined, 1],
    ['workers that do', { url: 'sqlite:./journal.db' }, 4, undefined, 1],
    ['one instance with a file', { url: 'sqlite:./journal.db' }, 1, undefined, 0],
    ['no journal', { url: 'none' }, 1, undefined, 0],
    ['a shared journal with a key', { ...shared, keys }, 4, undefined, 0],
    ['partners of which the adapter has all credentials', shared, 1, [independent], 0],
    ['one partner of which it has not', shared, 1, [independent, { ...dependent, match: { header: { name: 'x-partner', value: 'b' } } }], 1],
  ] // prettier-ignore
  it.each(rows)('of %s', (_what, journal, workers, partners, warnings) => {
    const upstreams = { v3: { baseUrl: 'http://v3.test' } }
    const config = parseConfig({ upstreams, journal, ...(partners === undefined ? {} : { partners }) })
    const found = warningsOf(config, workers, '2026-11-22')
    expect(found).toHaveLength(warnings)
    for (const text of found)
      expect(text).toMatch(/journal\.keys is empty: .*\. Add a key to journal\.keys\.$/)
  })
})

describe('the warning of a file for stages', () => {
  const v2 = { baseUrl: 'http://v2.test' }
  const rows: [what: string, sections: object, warnings: number][] = [
    ['a PostgreSQL journal of stages', { upstreams: { v2 } }, 1],
    ['a partner with a V2 of its own', { partners: [{ id: 'acme', match: { any: true }, v2 }] }, 1],
    [
      'one that names a folder',
      { upstreams: { v2 }, journal: { ...shared, keys, stateDir: '/var/lib/markbridge' } },
      0,
    ],
    ['no V2', {}, 0],
    ['SQLite, which has a file beside it', { upstreams: { v2 }, journal: { url: 'sqlite:./journal.db' } }, 0],
  ]
  it.each(rows)(
    'is given once: %s',
    (_what, { upstreams = {}, ...sections }: { upstreams?: object }, warnings) => {
      const v3 = { baseUrl: 'http://v3.test' }
      const config = parseConfig({
        journal: { ...shared, keys },
        ...sections,
        upstreams: { v3, ...upstreams },
      })
      const found = warningsOf(config, 1, '2026-11-22').filter((text) => text.includes('journal.stateDir'))
      expect(found).toHaveLength(warnings)
      for (const text of found) expect(text).toMatch(/Name a folder of each instance, such as /)
    },
  )
})
