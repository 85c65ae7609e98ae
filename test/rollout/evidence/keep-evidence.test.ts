import { expect, it } from 'vitest'

import { createEvidenceKeeper } from '../../../src/rollout/evidence/keep-evidence.ts'
import { createManualClock } from '../../support/manual-clock.ts'
import { startDuties } from '../../support/start-duties.ts'

it('the keeper of evidence destroys expired keys shortly after the start and then once an hour', async () => {
  const clock = createManualClock()
  let destroyed = 0
  const destroyExpired = (): Promise<number> => Promise.resolve((destroyed += 1))
  const store = { key: () => expect.fail(), add: () => expect.fail(), destroyExpired }
  const { stop } = startDuties(createEvidenceKeeper({ store, onKept: () => expect.fail() }).duties, clock)
  await clock.pass(5_000)
  expect(destroyed).toBe(1)
  await clock.pass(3_600_000)
  await stop()
  expect(destroyed).toBe(2)
})
