import { createHash, randomBytes } from 'node:crypto'
import { rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import { Pool } from 'undici'
import { expect, onTestFinished, test } from 'vitest'

import { sandboxRegister, type SandboxRegister } from '../../e2e/support/sandbox-register.ts'
import { makeFolder } from '../../journal/open-sqlite.ts'
import { fixed, sandboxHeaders, startSandbox } from '../../sandbox/start-sandbox.ts'
import { batchPath } from '../../support/batch-request.ts'
import { runs } from '../../support/long-run.ts'
import { ownFile } from '../own-file.ts'
import { type RunningCli, startCli } from '../run-cli.ts'

const RELOADS = runs(8, 100)
const patient = { timeout: 60_000, interval: 20 }
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')
const keyOf = (revision: number): string => `key of revision ${revision}`
const readPath = `/V2/Attendance/AttendanceRecords?$top=1&$filter=Learner%20eq%20${fixed.learner}`

interface Served {
  readonly cli: RunningCli
  readonly url: string
  /** Replaces the configuration file with a file that has the key of this revision. */
  write(revision: number, more?: object): Promise<void>
  /** Reads with the key of a revision on separate connections, which reach both workers, and returns the statuses. */
  statusesWith(revision: number): Promise<number[]>
}

/** Starts `serve` with a configuration file that accepts the subscription key of version 1 of the file. */
async function serve(v3: string, options: readonly string[]): Promise<Served> {
  const folder = await makeFolder()
  const file = join(folder, 'markbridge.yaml')
  const write = async (revision: number, more: object = {}): Promise<void> => {
    const config = {
      listen: { port: 0 },
      upstreams: { v3: { baseUrl: v3 } },
      journal: {
        url: `sqlite:${join(folder, 'journal.db')}`,
        keys: [{ id: 'k1', key: { env: 'JOURNAL_KEY' } }],
      },
      partners: [
        {
          id: 'always',
          match: { subscriptionKeySha256: sha256('sandbox') },
          v3: { concurrency: 1 + (revision % 8) },
        },
        {
          id: `revision-${revision}`,
          match: { subscriptionKeySha256: sha256(keyOf(revision)) },
          v3: { subscriptionKey: { env: 'V3_KEY' } },
        },
      ],
      ...more,
    }
    // Replaces the file by a rename, as editors do. JSON is valid YAML.
    await writeFile(`${file}~`, JSON.stringify(config))
    await rename(`${file}~`, file)
  }
  await write(1)
  const env = { JOURNAL_KEY: randomBytes(32).toString('base64'), V3_KEY: 'sandbox' }
  const cli = startCli(['serve', '--config', file, ...options], env)
  onTestFinished(async () => {
    await cli.stop()
  })
  const url = /adapter ready (\S+)/.exec(await cli.until(/ready \S+\n/))?.[1] ?? ''
  const statusesWith = (revision: number): Promise<number[]> =>
    Promise.all(
      Array.from({ length: 4 }, async () => {
        const headers = {
          ...sandboxHeaders,
          'Ocp-Apim-Subscription-Key': keyOf(revision),
          Connection: 'close',
        }
        return (await fetch(`${url}${readPath}`, { headers })).status
      }),
    )
  return { cli, url, write, statusesWith }
}

function reload({ cli }: Served): void {
  process.kill(cli.pid ?? 0, 'SIGHUP')
}

/** Starts clients that write and read. The returned function stops them, and resolves with the number of requests and the failures. */
function startLoad(
  url: string,
  { batch, headers }: SandboxRegister,
): () => Promise<{ sent: number; failed: unknown[] }> {
  const pool = new Pool(url, { connections: 6 })
  const failed: unknown[] = []
  let sent = 0
  let done = false
  const check = async (
    path: string,
    marks: RegExp,
    count: number,
    method: 'GET' | 'POST',
    body?: string,
  ): Promise<void> => {
    sent += 1
    try {
      const reply = await pool.request({
        method,
        path,
        headers: { ...batch.headers, ...headers },
        body: body ?? null,
      })
      const text = await reply.body.text()
      if (reply.statusCode !== 200 || text.match(marks)?.length !== count)
        failed.push([reply.statusCode, text])
    } catch (cause) {
      failed.push(cause)
    }
  }
  const client = async (): Promise<void> => {
    while (!done) {
      await Promise.all([
        check(batchPath, /HTTP\/1\.1 201/g, 5, 'POST', batch.body),
        check(readPath, /"ExternalID"/g, 1, 'GET'),
        check(`/V3/LearnerMedicals?$top=1`, /"value"/g, 1, 'GET'),
      ])
    }
  }
  const clients = [client(), client()]
  return async () => {
    done = true
    await Promise.all(clients)
    await pool.close()
    return { sent, failed }
  }
}

test(
  `no request fails in ${RELOADS} reloads of two workers under load`,
  { timeout: 60_000 + RELOADS * 3_000 },
  async () => {
    const sandbox = await startSandbox()
    const served = await serve(sandbox.url, ['--workers', '2'])
    const register = await sandboxRegister(sandbox, 5)
    const stopLoad = startLoad(served.url, register)
    for (let revision = 2; revision <= RELOADS + 1; revision += 1) {
      await served.write(revision)
      reload(served)
      await served.cli.logged({ msg: 'config reloaded', revision })
      expect(await served.statusesWith(revision)).toEqual([200, 200, 200, 200])
      expect(await served.statusesWith(revision - 1)).toEqual([401, 401, 401, 401])
    }
    const { sent, failed } = await stopLoad()
    expect(failed).toEqual([])
    expect(sent).toBeGreaterThan(RELOADS)
    expect(await register.written()).toEqual(register.learners)
    const metrics = (await (await fetch(`${served.url}/metrics`)).text()).split('\n')
    expect(metrics).toContain(`markbridge_config_reloads_total{result="reloaded"} ${RELOADS}`)
    expect(metrics).toContain(`markbridge_config_revision ${RELOADS + 1}`)
    expect(metrics.filter((line) => line.startsWith('# TYPE markbridge_config_revision'))).toHaveLength(1)
  },
)

test('serve --workers keeps its configuration if the file is invalid, and applies the last file after repeated signals', async () => {
  const sandbox = await startSandbox()
  const served = await serve(sandbox.url, ['--workers', '2'])
  await served.write(2, { limits: { maxPart: 1 }, listen: { port: 'hush' } })
  reload(served)
  const refused = await served.cli.logged({ msg: 'config refused' })
  expect(refused['faults']).toMatchObject([
    { target: 'listen.port', line: 1 },
    { target: 'limits.maxPart', message: expect.stringContaining('did you mean maxParts') as unknown },
  ])
  expect(served.cli.errors()).not.toContain('hush')
  expect([await served.statusesWith(1), await served.statusesWith(2)]).toEqual([
    [200, 200, 200, 200],
    [401, 401, 401, 401],
  ])
  for (const revision of [3, 4, 5]) {
    await served.write(revision, { listen: { port: 0, drainMs: 1_000 } })
    reload(served)
  }
  await expect.poll(() => served.statusesWith(5), patient).toEqual([200, 200, 200, 200])
  expect(await served.cli.logged({ msg: 'config reloaded' })).toMatchObject({
    needsRestart: ['listen.drainMs'],
  })
})

test('a worker that cannot apply a configuration is replaced by one that has the configuration of the other workers', async () => {
  const sandbox = await startSandbox()
  const served = await serve(sandbox.url, ['--workers', '2'])
  const { pid } = await served.cli.logged({ msg: 'worker started', worker: 2 })
  process.kill(Number(pid), 'SIGSTOP')
  await served.write(2)
  reload(served)
  await served.cli.logged({ msg: 'config reloaded', revision: 2 })
  await served.cli.logged({ msg: 'worker ended', worker: 2, signal: 'SIGKILL' })
  await served.cli.logged({ msg: 'started', worker: 3 })
  expect([await served.statusesWith(1), await served.statusesWith(2)]).toEqual([
    [401, 401, 401, 401],
    [200, 200, 200, 200],
  ])
  // A worker that starts later gets the applied configuration, even if the file has changed since.
  await served.write(3, { listen: { port: 1 } })
  const later = await served.cli.logged({ msg: 'worker started', worker: 3 })
  process.kill(Number(later['pid']), 'SIGKILL')
  await served.cli.logged({ msg: 'started', worker: 4 })
  expect([await served.statusesWith(2), await served.statusesWith(3)]).toEqual([
    [200, 200, 200, 200],
    [401, 401, 401, 401],
  ])
})

test('serve --watch reloads without a signal when the configuration or a secret file changes', async () => {
  const sandbox = await startSandbox({ keys: ['sandbox', 'other'] })
  const served = await serve(sandbox.url, ['--watch'])
  const secret = await ownFile('key', 'wrong\n')
  const match = { subscriptionKeySha256: sha256(keyOf(2)) }
  await served.write(2, { partners: [{ id: 'a', match, v3: { subscriptionKey: { file: secret } } }] })
  await served.cli.logged({ msg: 'config reloaded', revision: 2 })
  // V3 rejects the key `wrong`, which is the adapter's own credential, so the adapter answers 502.
  expect(await served.statusesWith(2)).toEqual([502, 502, 502, 502])
  await writeFile(secret, 'other\n')
  expect(await served.cli.logged({ msg: 'config reloaded', revision: 3 })).toMatchObject({ changed: ['a'] })
  expect(await served.statusesWith(2)).toEqual([200, 200, 200, 200])
})
