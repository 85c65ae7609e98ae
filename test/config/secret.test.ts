import { inspect } from 'node:util'
import { deserialize, serialize } from 'node:v8'

import { expect, it } from 'vitest'
import { parse } from 'yaml'

import {
  changedPaths,
  packConfig,
  type PackedConfig,
  parseConfig,
  Secret,
  unpackConfig,
} from '../../src/config/index.ts'
import { printConfig } from '../../src/config/yaml.ts'

const secret = new Secret('hush')

it('Secret.reveal returns the value of a secret', () => {
  expect(secret.reveal()).toBe('hush')
})

it.each([
  ['when it is converted to text', String(secret)],
  ['when it is converted to JSON', JSON.stringify({ secret })],
  ['when it is inspected', inspect({ secret }, { depth: 9, showHidden: true })],
  ['when its members are listed', JSON.stringify([Object.entries(secret), Object.keys(secret)])],
  ['when it is cloned', JSON.stringify(structuredClone(Object.assign({}, secret)))],
])('Secret does not show its value %s', (_name, text) => {
  expect(text).not.toContain('hush')
})

it('a printed configuration can be loaded again if its secrets are added', () => {
  const config = parseConfig({
    upstreams: { v3: { baseUrl: 'https://v3.test/sims' } },
    partners: [
      {
        id: 'acme',
        match: { any: true },
        clients: 'open',
        changeProcessName: null,
        v3: { subscriptionKey: new Secret('hush') },
      },
    ],
  })
  const text = printConfig(config)
  expect(text).not.toContain('hush')
  const printed = parse(text) as { partners: { v3: { subscriptionKey: unknown } }[] }
  expect(printed.partners[0]?.v3.subscriptionKey).toBe('[secret]')
  if (printed.partners[0] !== undefined) printed.partners[0].v3.subscriptionKey = new Secret('hush')
  expect(printConfig(parseConfig(printed))).toBe(text)
})

it('unpackConfig restores a packed configuration with its secrets and addresses', () => {
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
  expect(printConfig(config)).not.toContain('hush')
  const copy = unpackConfig(deserialize(serialize(packConfig(config))) as PackedConfig)
  expect(changedPaths(config, copy)).toEqual([])
  expect(copy.upstreams.v3.baseUrl).toBeInstanceOf(URL)
  expect(String(copy.partners[0]?.v3.auth.clientSecret)).toBe('[secret]')
  expect(copy.partners[0]?.v3.auth.clientSecret?.reveal()).toBe('hush')
})
