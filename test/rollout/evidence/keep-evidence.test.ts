import { expect, it } from 'vitest'

import { AdapterError } from '../../../src/errors.ts'
import { createEvidenceKeeper } from '../../../src/rollout/evidence/keep-evidence.ts'
import { createManualClock } from '../../support/manual-clock.ts'
import { startDuties } from '../../support/start-duties.ts'

it('destroys expired keys soon after the start and once an hour, and reports a failure once', async () => {
  const clock = createManualClock()
  let isBroken = false
  let destroyed = 0
  const keeper = createEvidenceKeeper({
    store: {
      key: () => expect.fail(),
      add: () => expect.fail(),
      destroyExpired: () => {
        if (isBroken) return Promise.reject(new AdapterError('ADP_JOURNAL_UNAVAILABLE', 'gone'))
        destroyed += 1
        return Promise.resolve(1)
      },
    },
    onKept: () => expect.fail(),
  })
  const { failures, stop } = startDuties(keeper.duties, clock)
  await clock.pass(5_000)
  expect(destroyed).toBe(1)
  await clock.pass(3_600_000)
  expect(destroyed).toBe(2)
  isBroken = true
  for (let hour = 0; hour < 3; hour += 1) await clock.pass(3_600_000)
  expect([destroyed, failures]).toEqual([2, ['expired evidence: ADP_JOURNAL_UNAVAILABLE']])
  await stop()
  expect(destroyed).toBe(2)
})
