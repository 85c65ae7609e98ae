import { readFile } from 'node:fs/promises'

import type { Command } from 'commander'
import { expect, test } from 'vitest'

import { createProgram } from '../../src/cli/program.ts'
import { runCli } from './run-cli.ts'
import { runCommand } from './run-command.ts'

const all = (command: Command): readonly Command[] => [command, ...command.commands.flatMap(all)]
const named = await createProgram([], () => undefined)
const names = named.commands.map((command) => command.name())
const program = await createProgram([...names, 'run', 'report', 'learn'], () => undefined)
const commands = all(program)

const pathOf = (command: Command): readonly string[] =>
  command.parent === null ? [] : [...pathOf(command.parent), command.name()]

test('--help lists every command, and the help of each command shows examples', async () => {
  const { status, stdout } = await runCli(['--help'])
  expect(status).toBe(0)
  expect([...stdout.matchAll(/^  ([a-z]+)(?: |$)/gm)].map(([, name]) => name)).toEqual([...names, 'help'])
  for (const name of names) {
    const own = await runCommand([name, ...(name === 'compare' ? ['run'] : []), '--help'])
    expect([own.status, own.stdout]).toEqual([0, expect.stringMatching(`Examples:\n  markbridge ${name}`)])
    expect((await runCommand(['help', name])).stdout).toBe((await runCommand([name, '--help'])).stdout)
  }
})

test('the help of every command fits in 80 columns', async () => {
  expect(commands.length).toBeGreaterThan(30)
  const wide: string[] = []
  for (const command of commands) {
    const { status, stdout } = await runCommand([...pathOf(command), '--help'])
    expect([pathOf(command), status]).toEqual([pathOf(command), 0])
    wide.push(...stdout.split('\n').filter((line) => line.length > 80))
  }
  expect(wide).toEqual([])
})

test('a flag takes the same kind of value in all commands', () => {
  const forms = new Map<string, Set<string>>()
  for (const { long, flags } of commands.flatMap((command) => command.options))
    forms.set(long ?? '', (forms.get(long ?? '') ?? new Set()).add(flags))
  const several = [...forms.values()].filter(({ size }) => size > 1)
  // Two flags differ by command: `--out` names a file or a folder, and `--since` takes a day or a time.
  expect(several.map((own) => [...own].sort())).toEqual([
    ['--out <dir>', '--out <file>'],
    ['--since <day>', '--since <time>'],
  ])
})

test('every command that prints a result has --json', () => {
  const without = commands.filter(
    (command) => command.commands.length === 0 && !command.options.some(({ long }) => long === '--json'),
  )
  // The first three commands run until they are stopped, and the last always prints JSON.
  expect(without.map((command) => pathOf(command).join(' '))).toEqual([
    'demo',
    'serve',
    'sandbox',
    'config schema',
  ])
})

test.each([
  { args: ['fly'], text: 'unknown command' },
  { args: ['serve', '--prot', '1'], text: 'unknown option' },
  { args: ['serve', '--port', '70000'], text: 'must be a whole number from 0 to 65535' },
  { args: ['serve', '--workers', '65'], text: 'must be from 1 to 64' },
  {
    args: ['serve', '--v3', 'http://127.0.0.1:1', '--journal', 'none', '--workers', '2'],
    text: '--workers 2 needs a journal',
  },
  { args: ['sandbox', '--seed', 'x'], text: 'whole number' },
  { args: ['send', 'x'], text: "required option '--to <url>'" },
  { args: ['send', 'x', '--to', 'nowhere'], text: 'must be http or https' },
  { args: ['send', 'x', '--to', 'http://x', '--header', 'X-School'], text: 'must be a header field' },
  { args: ['send', 'x', '--to', 'http://x', '--header', 'Host: y'], text: 'must be a header field' },
  { args: ['send', 'x', '--to', 'ftp://x'], text: 'must be http or https' },
  { args: ['check'], text: 'missing required argument' },
  { args: ['check', '/nowhere/body.txt'], text: 'cannot be read' },
  { args: ['serve'], text: 'No configuration was found' },
  { args: ['serve', '--config', '/nowhere.yaml'], text: 'cannot be read' },
])('markbridge exits with status 2 and names the fault for the wrong usage $args', async ({ args, text }) => {
  const { status, stderr } = await runCommand(args)
  expect({ status, says: stderr.includes(text) ? text : stderr }).toEqual({ status: 2, says: text })
})

const read = (path: string): Promise<string> => readFile(new URL(`../../${path}`, import.meta.url), 'utf8')

test('every file that names the oldest supported version of Node.js names the same version', async () => {
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
