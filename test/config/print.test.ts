import { parse } from 'yaml'
import { expect, it } from 'vitest'

import { parseConfig, Secret } from '../../src/config/index.ts'
import { printConfig } from '../../src/config/yaml.ts'

it('prints the whole configuration as a file that could be loaded again, but for its secrets', () => {
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
