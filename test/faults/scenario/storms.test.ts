import { expect, test } from 'vitest'

import { createRandom } from '../../../src/sandbox/random.ts'
import { startSandbox } from '../../sandbox/start-sandbox.ts'
import { startStorms, stormNames } from './storms.ts'

test('storms of every name come and go, and the service is sound at the end', async () => {
  const sandbox = await startSandbox()
  const struck = new Set<unknown>()
  const storms = startStorms(sandbox.url, stormNames, createRandom(1, 'storms'))
  await expect
    .poll(
      async () => {
        const { body } = await sandbox.json('GET', '/_sandbox/faults')
        for (const { fault } of body as { fault: { kind: string } }[]) struck.add(fault.kind)
        return struck.size
      },
      { timeout: 60_000, interval: 20 },
    )
    .toBeGreaterThanOrEqual(3)
  await storms.stop()
  expect(storms.count()).toBeGreaterThanOrEqual(3)
  expect((await sandbox.json('GET', '/_sandbox/faults')).body).toEqual([])
})
