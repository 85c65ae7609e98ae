import { readFile } from 'node:fs/promises'

import { expect, test } from 'vitest'
import { parse } from 'yaml'

import { parseConfig } from '../../src/config/index.ts'
import { resolveSecrets } from '../../src/config/secret.ts'
import { configurationPage, makeConfigurationPage } from './write-configuration.ts'

const page = await readFile(configurationPage, 'utf8')

test('docs/configuration.md has the text that npm run docs generates from the schema', async () => {
  expect(page).toBe(await makeConfigurationPage())
})

test('the configuration files in docs/configuration.md are valid', async () => {
  const blocks = [...page.matchAll(/^```yaml( auth)?\n([^]*?)^```$/gm)]
  expect(blocks.length).toBe(2)
  for (const [, isAuth, text = ''] of blocks) {
    const match = { header: { name: 'x-partner', value: 'acme' } }
    const partners = [{ id: 'acme', match, v3: parse(text) as object }]
    const file: unknown = isAuth
      ? { upstreams: { v3: { baseUrl: 'https://v3.example' } }, partners }
      : parse(text)
    const sources = { env: () => 'ab'.repeat(32), file: () => Promise.resolve(undefined) }
    const { value, faults } = await resolveSecrets(file, sources)
    expect(parseConfig(value, faults).partners.map(({ id }) => id)).toEqual(['acme'])
  }
})
