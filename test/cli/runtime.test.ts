import { readFile } from 'node:fs/promises'

import { expect, test } from 'vitest'

const read = (path: string): Promise<string> => readFile(new URL(`../../${path}`, import.meta.url), 'utf8')

test('the oldest Node.js is the same wherever it is named', async () => {
  const { engines, scripts } = JSON.parse(await read('package.json')) as {
    engines: { node: string }
    scripts: Record<string, string>
  }
  const oldest = engines.node.replace('>=', '')
  const [major, minor] = oldest.split('.')
  expect(scripts['test:oldest']).toContain(`node@${oldest}.0 `)
  const main = await read('src/cli/main.ts')
  expect(main).toContain(`major < ${major} || (major === ${major} && minor < ${minor})`)
  expect(main).toContain(`needs Node.js ${oldest} or newer`)
  expect(await read('docs/operations.md')).toContain(`Node.js ${oldest} or newer`)
  expect(await read('.ci/github-actions.yml')).toContain(`node-version: '${major}'`)
  expect(await read('deploy/Containerfile')).toContain(`node:${major}-slim`)
})
