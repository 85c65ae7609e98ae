import { expect, onTestFinished, test } from 'vitest'

import { createRandom } from '../../../src/sandbox/random.ts'
import { startSandbox } from '../../sandbox/start-sandbox.ts'
import { startLoad, usualLoad } from '../load/load.ts'
import type { Samples } from '../load/write.ts'
import { type KillPlan, startSupervisor } from './supervisor.ts'

const plan: KillPlan = {
  random: createRandom(1, 'kills'),
  failpointShare: 0,
  store: 'sqlite',
  lifeMs: [50, 150],
}

async function supervised(choices: Partial<KillPlan>) {
  const sandbox = await startSandbox()
  const config = { upstreams: { v3: { baseUrl: sandbox.url } }, journal: { url: 'none' } }
  const supervisor = await startSupervisor({ config, plan: { ...plan, ...choices } })
  onTestFinished(() => supervisor.close())
  const samples = (await sandbox.json('GET', '/_sandbox/samples')).body as Samples
  const load = startLoad({ ...usualLoad, seed: 1, url: supervisor.url, samples, connections: 2 })
  onTestFinished(() => load.close())
  return { supervisor, load }
}

test('kills the adapter again and again, tells kills at work from others, and it comes back on the same port', async () => {
  const left = [3, 0]
  const { supervisor, load } = await supervised({ countOpen: async () => left.shift() ?? 0 })
  await expect
    .poll(() => supervisor.counts().kills, { timeout: 60_000, interval: 20 })
    .toBeGreaterThanOrEqual(2)
  await load.stop()
  await supervisor.spare()
  const { kills, crashes, busy, recovering } = supervisor.counts()
  expect([kills >= 2, busy + recovering]).toEqual([true, 1])
  const health = await fetch(`${supervisor.url}/healthz`)
  await health.body?.cancel()
  expect([health.status, crashes]).toEqual([200, []])
  // Nobody kills it any longer.
  expect(supervisor.counts().kills).toBe(kills)
  expect(load.records()).toBeGreaterThan(0)
})

test('a process with a failpoint kills itself', async () => {
  const { supervisor, load } = await supervised({ failpointShare: 1, lifeMs: [10, 20] })
  await expect
    .poll(() => supervisor.counts().failpoints, { timeout: 60_000, interval: 20 })
    .toBeGreaterThan(0)
  await load.stop()
  expect(supervisor.counts().crashes).toEqual([])
})
