import { createServer } from 'node:net'

import { expect, test } from 'vitest'

import { runCli } from './run-cli.ts'
import { runCommand } from './run-command.ts'

test('help names every command', async () => {
  const { status, stdout } = await runCli(['--help'])
  expect(status).toBe(0)
  for (const name of ['demo', 'serve', 'sandbox', 'send', 'check', 'journal', 'config'])
    expect(stdout).toMatch(new RegExp(`^  ${name}`, 'm'))
})

test.each(['demo', 'serve', 'sandbox', 'send', 'check', 'journal', 'config'])(
  'help of %s shows examples',
  async (name) => {
    const { status, stdout } = await runCommand([name, '--help'])
    expect(status).toBe(0)
    expect(stdout).toContain('Examples:')
    expect(stdout).toContain(`markbridge ${name}`)
  },
)

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

test('a port in use is named, with a way out', async () => {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  const { status, stderr } = await runCommand(
    ['serve', '--v3', 'http://127.0.0.1:1', '--port', String(port), '--journal', 'none'],
    {
      MARKBRIDGE_LOG_LEVEL: 'silent',
    },
  )
  server.close()
  expect({ status, stderr }).toEqual({
    status: 2,
    stderr: `markbridge: Port ${port} is in use (EADDRINUSE). Choose another with --port.\n`,
  })
})
