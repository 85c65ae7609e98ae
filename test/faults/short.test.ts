import { describe, expect, test } from 'vitest'

import { missingPostgres } from '../support/start-postgres.ts'
import { printResults } from './scenario/print-results.ts'
import { type RunBounds, type RunResult, runScenario } from './scenario/run-scenario.ts'
import { type Scenario, scenarios } from './scenario/scenario.ts'

/** `npm run test:faults` in short: a scenario of each kind, for seconds, two side by side: each waits for starts most of its time. */
const seed = 1
/** As `npm run test:faults`. */
const settleMs = 60_000
const timeout = 180_000

async function runShort(
  scenario: Scenario,
  bounds: Omit<RunBounds, 'seed' | 'settleMs'>,
): Promise<RunResult> {
  const result = await runScenario(scenario, { seed, settleMs, ...bounds })
  // The table says more than the first difference would.
  expect([result.findings, result.crashes], printResults([result])).toEqual([[], []])
  expect(result.records).toBeGreaterThan(20)
  return result
}

describe.concurrent('nothing lost, nothing doubled (product contract 3)', () => {
  test('while the adapter is killed again and again', { timeout }, async () => {
    const { kills, busy } = await runShort(scenarios.killed, { forMs: 15_000, kills: 6 })
    expect([kills > 0, busy > 0]).toEqual([true, true])
  })

  test('while connections break on either side of it, and clients send again', { timeout }, async () => {
    const { before, load } = scenarios.retries
    const { broken, replays } = await runShort({ ...scenarios.broken, before, load }, { forMs: 3_000 })
    expect([broken > 5, replays > 2]).toEqual([true, true])
  })

  test('while the service stores other values and its answers are lost', { timeout }, async () => {
    const { broken } = await runShort(scenarios.cutTimes, { forMs: 6_000, kills: 2 })
    expect(broken).toBeGreaterThan(0)
  })

  test('while instances stand still for longer than their lease and clocks jump', { timeout }, async () => {
    const paused = { ...scenarios.paused, instances: 2, clock: 'injected' } as const
    const { pauses } = await runShort(paused, { forMs: 10_000, pauses: 4 })
    expect(pauses).toBeGreaterThan(0)
  })

  test('while the file of its journal is damaged', { timeout }, async () => {
    const { damages } = await runShort({ ...scenarios.damaged, service: [] }, { forMs: 6_000, kills: 2 })
    expect(damages).toBeGreaterThan(0)
  })

  test.skipIf(missingPostgres() !== undefined)(
    'while two instances share one PostgreSQL and are killed in turn',
    { timeout },
    async () => {
      await runShort({ ...scenarios.together, instances: 2 }, { forMs: 8_000, kills: 2 })
    },
  )
})
