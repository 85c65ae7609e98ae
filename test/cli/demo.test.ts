import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

import { afterAll, beforeAll, expect, test } from 'vitest'

import { decodeBatchReply } from '../../src/v2/index.ts'
import { type RunningCli, startCli } from './run-cli.ts'
import { runCommand } from './run-command.ts'

const FIXTURE = 'fixtures/class-register/body.txt'

let demo: RunningCli
let printed: string

beforeAll(async () => {
  // There is no journal, so that a repeated batch is posted each time.
  demo = startCli(['demo', '--port', '0', '--sandbox-port', '0', '--journal', 'none'])
  printed = await demo.until(/Stop with/)
})
afterAll(async () => {
  expect(await demo.stop()).toBe(0)
})

async function paste(line: string): Promise<string> {
  return (await promisify(execFile)('bash', ['-c', line])).stdout
}

const effects = async (): Promise<unknown[]> => {
  const line = /curl -s (\S+)/.exec(printed)?.[0] ?? ''
  return JSON.parse(await paste(line)) as unknown[]
}
const adapter = (): string => /adapter ready (\S+)/.exec(printed)?.[1] ?? ''
const sandbox = (): string => /sandbox ready (\S+)/.exec(printed)?.[1] ?? ''
const reset = (): Promise<unknown> => fetch(`${sandbox()}/_sandbox/reset`, { method: 'POST' })

test('the curl line that the demo prints posts 30 records, of which V3 accepts 27 and refuses 3', async () => {
  const line = printed.split('\n').find((candidate) => candidate.startsWith('curl -sS')) ?? ''
  const reply = await paste(`${line} -D -`)
  const [head = '', ...rest] = reply.split('\r\n\r\n')
  const contentType = /^content-type: (.*)$/im.exec(head)?.[1]
  const { parts } = decodeBatchReply(Buffer.from(rest.join('\r\n\r\n')), contentType)
  expect(parts.map(({ contentId }) => contentId)).toEqual(
    Array.from({ length: 30 }, (_, index) => String(index + 1)),
  )
  const refused = parts
    .filter(({ status }) => status === 400)
    .map(({ body }) => JSON.parse(body) as Record<string, string>[])
  expect(parts.filter(({ status }) => status === 201)).toHaveLength(27)
  expect(refused.map((errors) => errors.map(({ ErrorCode }) => ErrorCode)).sort()).toEqual([
    ['ATT_VAL_2'],
    ['ATT_VAL_2', 'ATT_VAL_3'],
    ['ATT_VAL_3'],
  ])
  for (const errors of refused) expect(new Set(errors.map(({ SequenceID }) => SequenceID)).size).toBe(1)
  expect(await effects()).toHaveLength(27)
})

test('send --json prints one document, without outcomes if the ids of the batch differ', async () => {
  await reset()
  const boundary = 'batch_ffffffff-ffff-4fff-8fff-ffffffffffff'
  const { status, stdout } = await runCommand([
    'send',
    FIXTURE,
    '--to',
    adapter(),
    '--boundary',
    boundary,
    '--json',
  ])
  expect(status).toBe(1)
  expect(JSON.parse(stdout)).toEqual({ records: [], expected: 30, complete: true })
  expect(await effects()).toHaveLength(27)
})

test('send exits with status 1 and prints that nothing was sent if no server listens', async () => {
  const { status, stderr } = await runCommand(['send', FIXTURE, '--to', 'http://127.0.0.1:1'])
  expect({ status, stderr }).toEqual({
    status: 1,
    stderr: expect.stringContaining('(ECONNREFUSED). Nothing was sent.') as unknown,
  })
})

test('serve and sandbox print their ready lines as separate processes, and stop on SIGTERM', async () => {
  const none = ['--journal', 'none']
  const apart = startCli(['serve', '--v3', sandbox(), '--port', '0', ...none], {
    MARKBRIDGE_LOG_LEVEL: 'silent',
  })
  const url = /adapter ready (\S+)/.exec(await apart.until(/ready .*\n/))?.[1] ?? ''
  expect((await fetch(`${url}/readyz`)).status).toBe(200)
  expect(await apart.stop()).toBe(0)
  const other = startCli(['sandbox', '--port', '0', '--seed', '2'])
  expect(await other.until(/\n/)).toMatch(/^sandbox ready http:\/\/127\.0\.0\.1:\d+\n$/)
  expect(await other.stop()).toBe(0)
})

test('demo answers a repeated batch with the same reply from its journal and posts nothing', async () => {
  const durable = startCli(['demo', '--port', '0', '--sandbox-port', '0'])
  const text = await durable.until(/Stop with/)
  const line = text.split('\n').find((candidate) => candidate.startsWith('curl -sS')) ?? ''
  const first = await paste(line)
  expect(first).toContain('201 Created')
  expect(await paste(line)).toBe(first)
  expect(JSON.parse(await paste(/curl -s (\S+)/.exec(text)?.[0] ?? ''))).toHaveLength(27)
  expect(await durable.stop()).toBe(0)
})
