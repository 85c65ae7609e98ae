import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

import { expect, test } from 'vitest'

import { mainOfCli } from '../support/main-of-cli.ts'
import { runCli } from './run-cli.ts'

const preloaded = {
  NODE_OPTIONS: `--import=${fileURLToPath(new URL('print-modules.ts', import.meta.url))}`,
}

/** Returns the packages and the files of this project that a command loads. */
async function loadedBy(...args: string[]): Promise<{ packages: string[]; own: string[] }> {
  return modulesIn((await runCli(args, preloaded)).stderr)
}

function modulesIn(stderr: string): { packages: string[]; own: string[] } {
  const urls = JSON.parse(/^modules (.*)$/m.exec(stderr)?.[1] ?? '[]') as string[]
  const packages = urls.flatMap((url) => /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1] ?? [])
  const own = urls.flatMap((url) => /\/dist\/(.*)\.js$/.exec(url)?.[1] ?? [])
  return { packages: [...new Set(packages)].sort(), own }
}

test.each(['--version', '--help'])(
  'markbridge %s loads only commander and the names of the commands',
  async (flag) => {
    const { packages, own } = await loadedBy(flag)
    expect(packages).toEqual(['commander'])
    expect(own.sort()).toEqual([
      ...['cli/main', 'cli/program', 'cli/text', 'cli/version'],
      ...['config/environment', 'errors', 'http/address'],
    ])
  },
)

test('markbridge compare --help loads only commander', async () => {
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
])('the command $args loads only $packages', async ({ args, packages }) => {
  expect((await loadedBy(...args)).packages).toEqual(packages)
})

test('serve --workers does not load the adapter in the process that starts workers', async () => {
  const { packages, own } = await loadedBy('serve', '--workers', '2')
  expect(packages).toEqual(expect.arrayContaining(['prom-client']))
  expect(packages.filter((name) => ['express', 'kysely', 'pg', 'undici'].includes(name))).toEqual([])
  expect(own).not.toContain('app')
})

test.each(['journal/sqlite/worker', 'app/background/thread'])(
  'the thread of %s loads neither a query builder nor a server',
  async (module) => {
    const script = mainOfCli.replace('cli/main', module)
    const env = { ...process.env, ...preloaded }
    // Runs the module of the thread as a program, which ends at once because it gets no task.
    const ended = promisify(execFile)(process.execPath, [script], { env })
    const { stderr } = await ended.catch((failed: unknown) => failed as { readonly stderr: string })
    const { packages, own } = modulesIn(stderr)
    expect(packages.filter((name) => ['express', 'kysely', 'pg'].includes(name))).toEqual([])
    expect(own).toContain(module)
  },
)
