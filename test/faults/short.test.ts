import { describe, expect, test } from 'vitest'

import { missingPostgres } from '../support/start-postgres.ts'
import { printResults } from './scenario/print-results.ts'
import { type RunResult, runScenario } from './scenario/run-scenario.ts'
import { type Scenario, scenarios } from './scenario/scenario.ts'

/** `npm run test:faults` in short: the same scenarios, seconds each. */
const seed = 1
/** As `npm run test:faults`. */
const settleMs = 60_000
const timeout = 120_000

async function runShort(scenario: Scenario, forMs: number): Promise<RunResult> {
  const result = await runScenario(scenario, { seed, forMs, settleMs })
  // The table says more than the first difference would.
  expect([result.findings, result.crashes], printResults([result])).toEqual([[], []])
  return result
}

describe('nothing lost, nothing doubled (product contract 3)', () => {
  test('while the adapter is killed again and again', { timeout }, async () => {
    const result = await runShort(scenarios.killed, 10_000)
    expect(result.busy).toBeGreaterThan(3)
    expect(result.records).toBeGreaterThan(50)
  })

  test(
    'while connections to the service break before and after it has applied a record',
    { timeout },
    async () => {
      const result = await runShort(scenarios.broken, 4_000)
      expect(result.broken).toBeGreaterThan(5)
    },
  )

  test('while clients send the same bytes again and again', { timeout }, async () => {
    const result = await runShort(scenarios.retries, 4_000)
    expect([result.broken > 10, result.replays > 5]).toEqual([true, true])
  })

  test.skipIf(missingPostgres() !== undefined)(
    'while three instances share one PostgreSQL and are killed in turn',
    { timeout },
    async () => {
      const result = await runShort(scenarios.together, 8_000)
      expect(result.records).toBeGreaterThan(50)
    },
  )
})
