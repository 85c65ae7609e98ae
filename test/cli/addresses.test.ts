import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import { describe, expect, test } from 'vitest'

import { makeFolder } from '../journal/open-sqlite.ts'
import { runCommand } from './run-command.ts'

// In the addresses with 4711, a URL parser reads the user `jane` as the host, and the start of the password as the port.
const users = ['jane:4711/hush@', 'jane:hu/sh@', 'jane:4711?hush@', 'jane:4711#hush@', 'jane:hu sh/x@']
const expectHidden = (text: string): void => expect(text).not.toMatch(/jane|hush|hu.sh|4711/)

describe.each(users)('an address with the user and password %s', (user) => {
  test.each([
    ['config', 'check'],
    ['config', 'print'],
    ['serve', '--port', '0'],
    ['doctor'],
    ['journal', 'ls'],
    ['journal', 'adopt'],
    ['rollout', 'ls'],
  ])(
    'is refused as journal.url by the command %s %s with a message that quotes no part of the address',
    async (...args) => {
      const file = join(await makeFolder(), 'own.yaml')
      const journal = { url: `postgres://${user}127.0.0.1:1/markbridge` }
      await writeFile(file, JSON.stringify({ upstreams: { v3: { baseUrl: 'http://127.0.0.1:1' } }, journal }))
      const { status, stdout, stderr } = await runCommand([...args, '--config', file])
      expect(status).toBe(args[0] === 'doctor' ? 1 : 2)
      expect(`${stdout}${stderr}`).toContain('percent-encoded')
      expectHidden(`${stdout}${stderr}`.replaceAll(file, ''))
    },
  )

  test.each([
    ['journal', 'ls', '--journal', `postgres://${user}127.0.0.1:1/markbridge`],
    ['serve', '--v3', 'http://127.0.0.1:1', '--journal', `postgres://${user}127.0.0.1:1/markbridge`],
    ['serve', '--port', '0', '--journal', 'none', '--v3', `https://${user}v3.test`],
    [
      'serve',
      '--port',
      '0',
      '--journal',
      'none',
      '--v3',
      'http://127.0.0.1:1',
      '--v2',
      `https://${user}v2.test`,
    ],
    ['send', 'fixtures/class-register/body.txt', '--to', `https://${user}v2.test/x`],
    ['compare', 'run', '--v2', `https://${user}v2.test`],
  ])('is refused in a flag of %s with a message that quotes no part of the address', async (...args) => {
    const { status, stdout, stderr } = await runCommand(args, { MARKBRIDGE_LOG_LEVEL: 'silent' })
    expect(status).toBe(2)
    expect(stderr).toMatch(/percent-encoded|%40|must be (?:an )?http or https/i)
    expectHidden(`${stdout}${stderr}`)
  })

  test('is refused as the address of V3 in the configuration with a message that quotes no part of the address', async () => {
    const file = join(await makeFolder(), 'own.yaml')
    await writeFile(file, JSON.stringify({ upstreams: { v3: { baseUrl: `https://${user}v3.test/` } } }))
    const { status, stdout, stderr } = await runCommand(['config', 'check', '--config', file])
    expect(status).toBe(2)
    expectHidden(`${stdout}${stderr}`.replaceAll(file, ''))
  })
})
