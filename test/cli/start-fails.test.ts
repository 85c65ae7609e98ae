import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'

import { afterAll, beforeAll, expect, test } from 'vitest'

import { ownFile } from './own-file.ts'
import type { CliResult } from './run-cli.ts'
import { runCommand } from './run-command.ts'

let taken: Server
let port: number

beforeAll(async () => {
  taken = createServer()
  await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve))
  port = (taken.address() as AddressInfo).port
})
afterAll(() => taken.close())

const refused = (line: string): Partial<CliResult> => ({ status: 2, stderr: `markbridge: ${line}\n` })

test.each([
  ['--port', '--sandbox-port'],
  ['--sandbox-port', '--port'],
])('demo prints a command with free ports if the port in the flag %s is in use', async (taken, other) => {
  const { status, stderr } = await runCommand(['demo', taken, String(port), other, '0', '--journal', 'none'])
  expect([status, stderr]).toEqual([
    2,
    `markbridge: Port ${port} is in use, perhaps by another demo. Nothing was started. To use free ports, run: markbridge demo --port 0 --sandbox-port 0 --console 0\n`,
  ])
})

test.each([
  ['--port', ['sandbox']],
  ['--port', ['serve', '--v3', 'http://127.0.0.1:1', '--journal', 'none']],
])('the error names the flag %s of the command %j if the port is in use', async (option, args) => {
  const env = { MARKBRIDGE_LOG_LEVEL: 'silent' }
  expect(await runCommand([...args, option, String(port)], env)).toEqual({
    ...refused(
      `Port ${port} is in use (EADDRINUSE). Nothing was started. Choose another port with ${option}.`,
    ),
    stdout: '',
  })
})

// No machine has this address, which belongs to TEST-NET-3 (RFC 5737).
test.each([['sandbox'], ['serve', '--v3', 'http://127.0.0.1:1', '--journal', 'none']])(
  'the command %s exits with status 2 for a host that is not an address of this machine',
  async (...args) => {
    const result = await runCommand([...args, '--port', '0', '--host', '203.0.113.9'], {
      MARKBRIDGE_LOG_LEVEL: 'silent',
    })
    expect(result).toMatchObject(
      refused(
        'Cannot listen on 203.0.113.9, port 0 (EADDRNOTAVAIL). Nothing was started. Choose another host with --host.',
      ),
    )
  },
)

test.each([
  ['serve', '--v3', 'http://127.0.0.1:1', '--journal', 'none', '--port', '0'],
  ['demo', '--port', '0', '--sandbox-port', '0'],
])('the command %s lists the log levels if MARKBRIDGE_LOG_LEVEL is not a log level', async (...args) => {
  const { status, stderr } = await runCommand(args, { MARKBRIDGE_LOG_LEVEL: 'warning' })
  expect([status, stderr]).toEqual([
    2,
    expect.stringMatching(/^markbridge: .*MARKBRIDGE_LOG_LEVEL.* trace, .*warn.*\n$/),
  ])
})

test('sandbox prints the database file and the cause if the file cannot be opened', async () => {
  const text = await ownFile('text.db', 'This is not a database.'.repeat(100))
  for (const [db, why] of [
    [dirname(text), 'unable to open database file'],
    [text, 'file is not a database'],
    [join(text, 'in-a-file.db'), 'EEXIST: file already exists, mkdir'],
  ] as const) {
    const { status, stdout, stderr } = await runCommand(['sandbox', '--port', '0', '--db', db])
    expect([status, stdout, stderr.split('\n').length]).toEqual([2, '', 2])
    expect(stderr).toContain(`markbridge: The database file ${db} cannot be opened: ${why}`)
  }
})
