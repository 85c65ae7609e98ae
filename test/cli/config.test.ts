import Ajv from 'ajv'
import { parse } from 'yaml'
import { expect, test } from 'vitest'

import { createConfigJsonSchema } from '../../src/config/index.ts'
import { ownFile } from './own-file.ts'
import { runCommand } from './run-command.ts'

const good = `
upstreams: { v3: { baseUrl: "http://127.0.0.1:4010" } }
partners: [{ id: acme, match: { any: true }, clients: open, v3: { subscriptionKey: { env: ACME_V3_KEY } } }]
`

test('config check prints the partners of a valid file', async () => {
  const path = await ownFile('good.yaml', good)
  const result = await runCommand(['config', 'check', path], { ACME_V3_KEY: 'top-secret' })
  expect(result).toEqual({ status: 0, stdout: `${path} is valid: 1 partner(s): acme\n`, stderr: '' })
  const json = await runCommand(['config', 'check', path, '--json'], { ACME_V3_KEY: 'top-secret' })
  expect(JSON.parse(json.stdout)).toEqual({ valid: true, partners: ['acme'], warnings: [] })
})

test.each(['check', 'print'])('config %s reads the file that its argument names, or else the file that --config names', async (command) => {
  const [path, other] = [await ownFile('own.yaml', good), await ownFile('other.yaml', 'listen: no\n')]
  const environment = { ACME_V3_KEY: 'top-secret', MARKBRIDGE_CONFIG: other }
  for (const args of [['--config', path], [path, '--config', other]]) {
    const { status, stdout } = await runCommand(['config', command, ...args], environment)
    expect([status, stdout]).toEqual([0, expect.stringContaining('acme')])
  }
}) // prettier-ignore

test('config print prints defaults and no secret', async () => {
  const path = await ownFile('print.yaml', good)
  const header = 'partners: [{ id: acme, match: { header: { name: X-Partner, value: top-secret } } }]\n'
  const withHeader = await ownFile(
    'header.yaml',
    `upstreams: { v3: { baseUrl: "http://127.0.0.1:4010" } }\n${header}`,
  )
  const printed = await runCommand(['config', 'print', withHeader])
  expect(printed.stdout).toMatch(/name: X-Partner\n\s+value: "\[secret\]"/)
  expect(printed.stdout).not.toContain('top-secret')
  for (const args of [[], ['--json']]) {
    const { status, stdout } = await runCommand(['config', 'print', path, ...args], {
      ACME_V3_KEY: 'top-secret',
    })
    expect(status).toBe(0)
    expect(stdout).toMatch(/"?budgetMs"?: 90000/)
    expect(stdout).toMatch(/subscriptionKey"?: "?\[secret\]"?/)
    expect(stdout).not.toContain('top-secret')
  }
})

test('config check warns of a shared journal without a key', async () => {
  const v3 = 'upstreams: { v3: { baseUrl: "http://127.0.0.1:4010" } }\n'
  const path = await ownFile('shared.yaml', `${v3}journal: { url: "postgres://db.test/journal" }\n`)
  const warning =
    /\nwarning: journal\.keys is empty, and instances can share the journal.* Add a key to journal\.keys\.\n$/
  const checked = await runCommand(['config', 'check', path])
  expect(checked).toEqual({ status: 0, stdout: expect.stringMatching(warning) as unknown, stderr: '' })
  const json = await runCommand(['config', 'check', path, '--json'])
  expect(JSON.parse(json.stdout)).toMatchObject({ valid: true, warnings: [expect.any(String)] })
})

test('config check --json lists every fault with its line and column', async () => {
  const path = await ownFile(
    'bad.json.yaml',
    'listen: { port: no }\nupstreams: { v3: { baseUrl: "ftp://x" } }\n',
  )
  const { status, stdout, stderr } = await runCommand(['config', 'check', path, '--json'])
  expect({ status, stderr, document: JSON.parse(stdout) as unknown }).toEqual({
    status: 2,
    stderr: '',
    document: {
      valid: false,
      faults: [
        { code: 'invalid_type', target: 'listen.port', line: 1, column: 11, message: 'Invalid input: expected number, received string' }, // prettier-ignore
        { code: 'custom', target: 'upstreams.v3.baseUrl', line: 2, column: 20, message: 'must be an http or https address' }, // prettier-ignore
      ],
    },
  })
  const missing = await runCommand(['config', 'check', '/nowhere.yaml', '--json'])
  expect(missing.status).toBe(2)
  expect(JSON.parse(missing.stdout)).toEqual({
    valid: false,
    faults: [
      {
        code: 'file',
        message: expect.stringContaining('/nowhere.yaml cannot be read: no such file') as string,
      },
    ],
  })
})

test('config schema prints a JSON Schema that validates the file', async () => {
  const { status, stdout, stderr } = await runCommand(['config', 'schema'])
  const schema = JSON.parse(stdout) as object
  expect({ status, stderr, schema }).toEqual({ status: 0, stderr: '', schema: createConfigJsonSchema() })
  const validate = new Ajv().compile(schema)
  expect(validate(parse(good))).toBe(true)
  expect(validate(parse(good.replace('subscriptionKey', 'subscriptionKeys')))).toBe(false)
})
