import { randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import { Client } from 'undici'
import { expect, onTestFinished, test } from 'vitest'

import { sandboxRegister, type SandboxRegister } from '../../e2e/support/sandbox-register.ts'
import { jsonBody, startSandbox } from '../../sandbox/start-sandbox.ts'
import { makeFolder } from '../../journal/open-sqlite.ts'
import { batchPath, failuresOf, readBatchReply } from '../../support/batch-request.ts'
import type { Reply } from '../../support/start-adapter.ts'
import { runCli, type RunningCli, startCli } from '../run-cli.ts'

type Sandbox = Awaited<ReturnType<typeof startSandbox>>

const COUNT = 20
const patient = { timeout: 60_000 }
const allCreated = Array.from({ length: COUNT }, () => ({ status: 201, codes: 'record' }))

/** Starts `serve --workers 2` in front of V3. With a key for the journal, each worker can finish the batches of the other worker. */
async function startTwo({ url: v3 }: Sandbox): Promise<{ cli: RunningCli; url: string }> {
  const folder = await makeFolder()
  const file = join(folder, 'markbridge.yaml')
  const config = {
    listen: { port: 0 },
    upstreams: { v3: { baseUrl: v3 } },
    partners: [{ id: 'default', match: { any: true }, v3: { readBackAfterMs: [10, 20] } }],
    journal: {
      url: `sqlite:${join(folder, 'journal.db')}`,
      keys: [{ id: 'k1', key: { env: 'JOURNAL_KEY' } }],
    },
  }
  // JSON is valid YAML.
  await writeFile(file, JSON.stringify(config))
  const env = { JOURNAL_KEY: randomBytes(32).toString('base64') }
  const cli = startCli(['serve', '--config', file, '--workers', '2'], env)
  onTestFinished(async () => {
    await cli.stop()
  })
  const url = /adapter ready (\S+)/.exec(await cli.until(/ready \S+\n/))?.[1] ?? ''
  return { cli, url }
}

/** Opens a connection, and finds its worker by the log line of the first request, which the worker refuses. */
async function connect(cli: RunningCli, url: string, path: string, code: string) {
  const client = new Client(url)
  onTestFinished(() => client.destroy())
  const refused = await client.request({ method: 'GET', path })
  await refused.body.dump()
  const { worker } = await cli.logged({ code })
  return { client, worker }
}

/** Opens a connection to each worker. The workers get connections in turn. */
async function connectBoth(cli: RunningCli, url: string) {
  const one = await connect(cli, url, batchPath, 'ADP_METHOD_NOT_ALLOWED')
  const other = await connect(cli, url, '/elsewhere', 'ADP_SUBSCRIPTION_KEY')
  expect(new Set([one.worker, other.worker])).toEqual(new Set([1, 2]))
  return [one, other] as const
}

async function post(client: Client, { batch, headers }: SandboxRegister): Promise<Reply> {
  const request = { method: 'POST', path: batchPath, body: batch.body } as const
  const reply = await client.request({ ...request, headers: { ...batch.headers, ...headers } })
  return { status: reply.statusCode, headers: reply.headers, text: await reply.body.text() }
}

function disturb(sandbox: Sandbox, fault: object): Promise<unknown> {
  const body = JSON.stringify({ method: 'POST', ...fault })
  return sandbox.request('PUT', '/_sandbox/faults', { headers: jsonBody, body })
}

/** Kills the process that started the workers, and checks that the workers end too. */
async function expectNoneOutlives(cli: RunningCli): Promise<void> {
  const pids = [1, 2].map(async (worker) =>
    Number((await cli.logged({ msg: 'worker started', worker }))['pid']),
  )
  const isThere = (pid: number): boolean => {
    try {
      return process.kill(pid, 0)
    } catch {
      return false
    }
  }
  const [one = 0, other = 0] = await Promise.all(pids)
  expect([one, other].map(isThere)).toEqual([true, true])
  await cli.stop('SIGKILL')
  await expect.poll(() => [one, other].map(isThere), patient).toEqual([false, false])
}

test('two workers that both receive a batch apply it once and send the same reply', async () => {
  const sandbox = await startSandbox()
  const { cli, url } = await startTwo(sandbox)
  const connections = await connectBoth(cli, url)
  const register = await sandboxRegister(sandbox, COUNT)
  await disturb(sandbox, { kind: 'latency', ms: 100 })
  const [one, other] = await Promise.all(connections.map(({ client }) => post(client, register)))
  expect(failuresOf(readBatchReply(one as Reply))).toEqual(allCreated)
  expect(other?.text).toBe(one?.text)
  expect(await register.written()).toEqual(register.learners)

  const metrics = await (await fetch(`${url}/metrics`)).text()
  for (const line of [
    'markbridge_workers 2',
    `markbridge_records_total{partner="default",outcome="accepted"} ${COUNT}`,
    'markbridge_batches_replayed_total{partner="default"} 1',
    `markbridge_journal_records{partner="default",state="confirmed"} ${COUNT}`,
    'markbridge_journal_available 2',
  ])
    expect(metrics.split('\n')).toContain(line)
  await expectNoneOutlives(cli)
})

test('a killed worker is replaced, and the other worker finishes the records of the killed worker', async () => {
  const sandbox = await startSandbox()
  const { cli, url } = await startTwo(sandbox)
  const [one, other] = await connectBoth(cli, url)
  const register = await sandboxRegister(sandbox, COUNT)
  // V3 applies the first half of the batch, and never responds to the other half.
  await disturb(sandbox, { kind: 'stall', skip: COUNT / 2 })
  const broken = post(one.client, register).catch(() => 'broken')
  await expect.poll(async () => (await register.written()).length, patient).toBe(COUNT / 2)
  const { pid } = await cli.logged({ msg: 'worker started', worker: one.worker })
  process.kill(Number(pid), 'SIGKILL')
  expect(await broken).toBe('broken')
  await sandbox.request('DELETE', '/_sandbox/faults')

  const reply = await post(other.client, register)
  expect(failuresOf(readBatchReply(reply))).toEqual(allCreated)
  expect(await register.written()).toEqual(register.learners)
  await cli.logged({ msg: 'worker ended', worker: one.worker, signal: 'SIGKILL', restartMs: 100 })
  await cli.logged({ msg: 'started', worker: 3 })
})

test('a worker finishes its batch before serve --workers ends on SIGTERM', async () => {
  const sandbox = await startSandbox()
  const { cli, url } = await startTwo(sandbox)
  const [{ client }] = await connectBoth(cli, url)
  const register = await sandboxRegister(sandbox, COUNT)
  await disturb(sandbox, { kind: 'latency', ms: 300 })
  const reply = post(client, register)
  await expect.poll(async () => (await register.written()).length, patient).toBeGreaterThan(0)
  const stopped = cli.stop()
  expect(failuresOf(readBatchReply(await reply))).toEqual(allCreated)
  expect(await stopped).toBe(0)
  for (const worker of [1, 2]) await cli.logged({ msg: 'stopped', worker })
})

test('serve --workers reports a missing key and a port in use once each, and leaves no worker process behind', async () => {
  const { port, url } = await startSandbox()
  const journal = `sqlite:${join(await makeFolder(), 'journal.db')}`
  const { status, stderr } = await runCli(
    ['serve', '--v3', url, '--port', String(port), '--workers', '2', '--journal', journal],
    { MARKBRIDGE_LOG_LEVEL: 'warn' },
  )
  const lines = [
    expect.stringMatching(
      /^\{.*"warning":"journal\.keys is empty, and 2 workers share the journal/,
    ) as unknown,
    `markbridge: Port ${port} is in use (EADDRINUSE). Nothing was started. Choose another port with --port.`,
    expect.stringMatching(/^markbridge: A worker could not start\./) as unknown,
  ]
  expect({ status, lines: stderr.split('\n') }).toEqual({ status: 2, lines: [...lines, ''] })
})
