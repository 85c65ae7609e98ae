import { fileURLToPath } from 'node:url'

import { expect, test } from 'vitest'

import { runCli } from './run-cli.ts'

const preload = fileURLToPath(new URL('print-modules.ts', import.meta.url))

/** The packages and own files that a command loads. */
async function loadedBy(...args: string[]): Promise<{ packages: string[]; own: string[] }> {
  const { stderr } = await runCli(args, { NODE_OPTIONS: `--import=${preload}` })
  const urls = JSON.parse(/^modules (.*)$/m.exec(stderr)?.[1] ?? '[]') as string[]
  const packages = urls.flatMap((url) => /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1] ?? [])
  const own = urls.flatMap((url) => /\/dist\/(.*)\.js$/.exec(url)?.[1] ?? [])
  return { packages: [...new Set(packages)].sort(), own }
}

test.each(['--version', '--help'])('%s loads commander and the names of the commands only', async (flag) => {
  const { packages, own } = await loadedBy(flag)
  expect(packages).toEqual(['commander'])
  expect(own.sort()).toEqual([
    ...['cli/main', 'cli/program', 'cli/text', 'cli/version'],
    ...['config/environment', 'errors'],
  ])
})

test('compare --help loads no work', async () => {
  expect((await loadedBy('compare', '--help')).packages).toEqual(['commander'])
})

test.each([
  { args: ['check', 'fixtures/class-register/body.txt'], packages: ['commander', 'undici', 'zod'] },
  {
    args: ['check', 'fixtures', '--config', 'nowhere.yaml'],
    packages: ['commander', 'undici', 'zod'],
  },
  {
    args: ['send', 'nowhere.txt', '--to', 'http://127.0.0.1:1'],
    packages: ['commander', 'undici', 'zod'],
  },
  { args: ['config', 'schema'], packages: ['commander', 'yaml', 'zod'] },
])('$args loads $packages', async ({ args, packages }) => {
  expect((await loadedBy(...args)).packages).toEqual(packages)
})

test('the process that starts workers does not load the adapter', async () => {
  const { packages, own } = await loadedBy('serve', '--workers', '2')
  expect(packages).toEqual(expect.arrayContaining(['prom-client']))
  expect(packages.filter((name) => ['express', 'kysely', 'pg', 'undici'].includes(name))).toEqual([])
  expect(own).not.toContain('app')
})
