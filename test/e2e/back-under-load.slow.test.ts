import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'

import { Pool } from 'undici'
import { describe, expect, onTestFinished, test } from 'vitest'

import { openRolloutStore } from '../../src/rollout/store/rollout-store.ts'
import { createSandbox } from '../../src/sandbox/index.ts'
import { createRandom } from '../../src/sandbox/random.ts'
import { runCli, type RunningCli, startCli } from '../cli/run-cli.ts'
import { schoolHeader } from '../faults/load/client.ts'
import { createWrites, flatRecordOf, type Samples } from '../faults/load/write.ts'
import { startFaultProxy } from '../faults/proxy/fault-proxy.ts'
import type { FaultPlan } from '../faults/proxy/fault.ts'
import { boundaryIn, createForwardLog } from '../faults/proxy/forwards.ts'
import { sandboxHeaders, testNow } from '../sandbox/start-sandbox.ts'
import { batchOf, batchPath } from '../support/batch-request.ts'
import { missingPostgres, startPostgres } from '../support/start-postgres.ts'

/** The time between the starts of two clients in milliseconds. A client starts even if earlier clients have no answers yet. */
const EVERY_MS = 60
const PATIENCE_MS = 3_000
const WITHIN_MS = 2_000

/** An adapter in its own process, with clients that post batches to the adapter. */
interface Instance {
  readonly cli: RunningCli
  /** Resolves with the time (ms since the epoch) at which a client next receives a 200 that V2 wrote. */
  firstOfV2(): Promise<number>
  /** Resolves once a client receives a reply with this status. */
  answered(status: number): Promise<void>
}

/** How V3 fails: not at all, by refusing connections, or by accepting requests without ever answering them. */
type Death = 'none' | 'refused' | 'silent'

async function startRig() {
  const sandbox = createSandbox({ now: testNow, v2Port: 0 })
  const { url, v2Url } = await sandbox.listen()
  onTestFinished(() => sandbox.close())
  let isSilent = false
  const plan: FaultPlan = {
    connection: () => 'pass',
    request: () => (isSilent ? { kind: 'stall', ms: 600_000 } : { kind: 'pass' }),
  }
  let sequence = 0
  const log = createForwardLog(() => (sequence += 1))
  const portOf = (address: string): number => Number(new URL(address).port)
  const v3 = await startFaultProxy({ targets: [portOf(url)], plan })
  const v2 = await startFaultProxy({ targets: [portOf(v2Url)], onForward: log.onLegacyForward })
  let closed: Promise<void> | undefined
  const closeV3 = (): Promise<void> => (closed ??= v3.close())
  onTestFinished(async () => {
    await Promise.all([closeV3(), v2.close()])
  })
  const postgres = await startPostgres()
  onTestFinished(() => postgres.close())
  const journalUrl = await postgres.createDatabase()
  const folder = mkdtempSync(join(tmpdir(), 'markbridge-back-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const configFile = join(folder, 'markbridge.yaml')
  const config = {
    listen: { port: 0 },
    upstreams: { v3: { baseUrl: v3.url }, v2: { baseUrl: v2.url } },
    journal: { url: journalUrl },
    partners: [{ id: 'acme', match: { any: true }, stage: 'v3', canary: { header: schoolHeader } }],
  }
  writeFileSync(configFile, JSON.stringify(config))
  const samples = (await (await fetch(`${url}/_sandbox/samples`)).json()) as Samples
  const start = async (number: number): Promise<Instance> => {
    const cli = startCli(['serve', '--config', configFile])
    onTestFinished(async () => {
      await cli.stop('SIGKILL')
    })
    const address = /adapter ready (\S+)/.exec(await cli.until(/adapter ready \S+\n/))?.[1] ?? ''
    return { cli, ...startClients(address, number, samples, log.isOfV2) }
  }
  const instances = [await start(0), await start(1)]
  return {
    instances,
    configFile,
    journalUrl,
    killV3: async (death: Death): Promise<void> => {
      if (death === 'silent') isSilent = true
      if (death === 'refused') await closeV3()
    },
  }
}

function startClients(
  url: string,
  number: number,
  samples: Samples,
  isOfV2: (boundary: string) => boolean,
): Pick<Instance, 'firstOfV2' | 'answered'> {
  const pool = new Pool(url)
  const nextWrite = createWrites(createRandom(number, 'back'), samples)
  const listeners = new Set<(status: number, ofV2: boolean) => void>()
  let batches = 0
  const post = async (): Promise<void> => {
    const id = `${number}-${(batches += 1)}`
    const batch = batchOf([flatRecordOf(nextWrite())], { batch: `batch_${id}`, changeset: `changeset_${id}` })
    const headers = { ...sandboxHeaders, ...batch.headers, [schoolHeader]: `school-${batches % 5}` }
    const signal = AbortSignal.timeout(PATIENCE_MS)
    const reply = await pool.request({ method: 'POST', path: batchPath, headers, body: batch.body, signal })
    await reply.body.dump()
    const ofV2 = isOfV2(boundaryIn(String(reply.headers['content-type'])) ?? '')
    for (const listener of listeners) listener(reply.statusCode, ofV2)
  }
  // Ignores a failed post (a broken connection, or a client that gave up), because later clients may still succeed.
  const timer = setInterval(() => void post().catch(() => undefined), EVERY_MS)
  onTestFinished(async () => {
    clearInterval(timer)
    await pool.destroy()
  })
  const until = (fits: (status: number, ofV2: boolean) => boolean): Promise<number> =>
    new Promise((resolve) => {
      const listener = (status: number, ofV2: boolean): void => {
        if (!fits(status, ofV2)) return
        listeners.delete(listener)
        resolve(Date.now())
      }
      listeners.add(listener)
    })
  return {
    firstOfV2: () => until((status, ofV2) => status === 200 && ofV2),
    answered: async (status) => {
      await until((own) => own === status)
    },
  }
}

function report(what: string, sinceMs: number, firsts: readonly number[]): number[] {
  const took = firsts.map((at) => at - sinceMs)
  console.log(`${what}: first answer of V2 after ${took.join(' and ')} ms`)
  return took
}

describe.skipIf(missingPostgres() !== undefined)('a rollback to V2 under load, with two instances', () => {
  test.each([
    ['V3 answers', 'none'],
    ['V3 refuses connections', 'refused'],
    ['V3 accepts requests and never answers', 'silent'],
  ] as const)(
    'returns every client to V2 within 2 s of the command while %s',
    { retry: 2 },
    async (what, death) => {
      const { instances, configFile, journalUrl, killV3 } = await startRig()
      await Promise.all(instances.map((each) => each.answered(200)))
      await killV3(death)
      // Lets some clients wait for the dead V3 before the command runs.
      if (death !== 'none') await delay(500)
      const firsts = Promise.all(instances.map((each) => each.firstOfV2()))
      const { status, stderr } = await runCli(['rollout', 'back', 'acme', '--config', configFile])
      expect([status, stderr]).toEqual([0, expect.any(String)])
      const rollout = await openRolloutStore({ url: journalUrl })
      const [back] = (await rollout.history({ partner: 'acme' })).slice(-1)
      await rollout.close()
      const took = report(what, back?.atMs ?? NaN, await firsts)
      expect(Math.max(...took)).toBeLessThan(WITHIN_MS)
    },
  )
})
