import { deserialize, serialize } from 'node:v8'

import { expect, it } from 'vitest'

import { parseConfig, Secret } from '../../src/config/index.ts'
import { changedPaths } from '../../src/config/changes.ts'
import { type PackedConfig, packConfig, unpackConfig } from '../../src/config/load.ts'

it('a configuration is the same on the other side of a channel', () => {
  const auth = {
    mode: 'clientCredentials',
    tokenUrl: 'https://id.test/token',
    clientId: 'me',
    clientSecret: new Secret('hush'),
    scope: 's',
  }
  const config = parseConfig({
    upstreams: { v3: { baseUrl: 'https://v3.test/a/' } },
    journal: { url: new Secret('postgres://u:p@db.test/j'), keys: [{ id: 'k', key: new Secret('ab'.repeat(32)) }] },
    partners: [
      { id: 'own', match: { header: { name: 'x', value: 'y' } }, v3: { auth } },
      { id: 'keys', match: { subscriptionKeySha256: ['aa'.repeat(32)] }, changeProcessName: null },
    ],
  }) // prettier-ignore
  const copy = unpackConfig(deserialize(serialize(packConfig(config))) as PackedConfig)
  expect(changedPaths(config, copy)).toEqual([])
  expect(copy.upstreams.v3.baseUrl).toBeInstanceOf(URL)
  expect(String(copy.partners[0]?.v3.auth.clientSecret)).toBe('[secret]')
  expect(copy.partners[0]?.v3.auth.clientSecret?.reveal()).toBe('hush')
})
