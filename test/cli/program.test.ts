import { expect, test } from 'vitest'

import { runCli } from './run-cli.ts'
import { runCommand } from './run-command.ts'

const names = [
  'demo',
  'serve',
  'sandbox',
  'send',
  'check',
  'record',
  'config',
  'journal',
  'rollout',
  'compare',
]

test('help names every command, and that of each shows examples', async () => {
  const { status, stdout } = await runCli(['--help'])
  expect(status).toBe(0)
  expect([...stdout.matchAll(/^  ([a-z]+)(?: |$)/gm)].map(([, name]) => name)).toEqual(
    expect.arrayContaining(names),
  )
  for (const name of names) {
    const args = name === 'compare' ? [name, 'run'] : [name]
    const own = await runCommand([...args, '--help'])
    expect([own.status, own.stdout]).toEqual([0, expect.stringMatching(`Examples:\n  markbridge ${name}`)])
    expect((await runCommand(['help', name])).stdout).toBe((await runCommand([name, '--help'])).stdout)
  }
})

test.each([
  { args: ['fly'], text: 'unknown command' },
  { args: ['serve', '--prot', '1'], text: 'unknown option' },
  { args: ['serve', '--port', '70000'], text: 'A port is a number from 0 to 65535' },
  { args: ['serve', '--workers', '65'], text: 'Workers are a number from 1 to 64' },
  {
    args: ['serve', '--v3', 'http://127.0.0.1:1', '--journal', 'none', '--workers', '2'],
    text: '--workers 2 needs a journal',
  },
  { args: ['sandbox', '--seed', 'x'], text: 'whole number' },
  { args: ['send', 'x'], text: "required option '--to <url>'" },
  { args: ['send', 'x', '--to', 'nowhere'], text: 'must be an http or https address' },
  { args: ['send', 'x', '--to', 'ftp://x'], text: 'must be an http or https address' },
  { args: ['check'], text: 'missing required argument' },
  { args: ['check', '/nowhere/body.txt'], text: 'cannot be read' },
  { args: ['serve'], text: 'upstreams.v3.baseUrl: is required' },
  { args: ['serve', '--config', '/nowhere.yaml'], text: 'cannot be read' },
])('wrong usage $args exits 2 and says why', async ({ args, text }) => {
  const { status, stderr } = await runCommand(args)
  expect({ status, says: stderr.includes(text) ? text : stderr }).toEqual({ status: 2, says: text })
})
