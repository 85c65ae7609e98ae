import { expect, it } from 'vitest'

import { runs } from '../support/long-run.ts'
import { runHistories } from './run-histories.ts'

it('the write engine keeps every promise in many simulated histories, which together contain every transition of a record', async () => {
  // This number of histories detects nearly every mutant.
  const count = runs(900, 20_000)
  // simulation.test.ts runs the earlier seeds.
  const told = await runHistories(['--histories', String(count), '--seed', '101'])
  expect(told).toMatch(new RegExp(`^${count} histories, .*: nothing was found$`, 'm'))
  expect(told).not.toContain('NEVER')
}, 600_000)

it('a simulated history has the same events for the same seed in every time zone and language', async () => {
  const [one, other] = await Promise.all([
    runHistories(['--seed', '7'], { TZ: 'UTC', LC_ALL: 'C' }),
    runHistories(['--seed', '7'], { TZ: 'Asia/Tokyo', LC_ALL: 'de_DE.UTF-8' }),
  ])
  expect(one).toBe(other)
  expect(one).toContain('the faults end')
})

it('the simulation reports a finding for an engine that retries an unknown outcome without a read-back', async () => {
  expect(await runHistories(['--mutants', '--only', 'retries an unknown outcome'])).toMatch(
    /seed \d+: (?:doubled|false)/,
  )
})
