import { describe, expect, test } from 'vitest'

import { missingPostgres } from '../support/start-postgres.ts'
import { printResults, type RunResult } from './scenario/report.ts'
import { type RunBounds, runScenario } from './scenario/run-scenario.ts'
import { type Scenario, scenarios } from './scenario/scenario.ts'

/**
 * The limits of each run, which only a run that hangs reaches. These tests are a short form of `npm run test:faults`, and run concurrently
 * because each run mostly waits for processes to start.
 */
const limits = { seed: 1, settleMs: 60_000, forMs: 60_000 } as const
const timeout = 240_000
/** A load of few clients, because this test is about faults and not about load. */
const few = { connections: 4, maxRecords: 5, thinkMs: 60 } as const

async function runShort(
  scenario: Scenario,
  bounds: Omit<RunBounds, 'seed' | 'settleMs' | 'forMs'>,
): Promise<RunResult> {
  const load = { ...scenario.load, ...few }
  const result = await runScenario({ ...scenario, load }, { ...limits, records: 20, ...bounds })
  // A failure shows the whole table of results, which says more than the first difference.
  expect([result.findings, result.crashes], printResults([result])).toEqual([[], []])
  expect(result.records).toBeGreaterThan(20)
  return result
}

describe.concurrent('the short fault run', () => {
  test('finds no lost or doubled mark while it kills the adapter repeatedly', { timeout }, async () => {
    const { kills, busy, failpoints } = await runShort(scenarios.killed, { kills: 3, busy: 1, failpoints: 1 })
    expect([kills > 0, busy > 0, failpoints > 0]).toEqual([true, true, true])
  })

  test('finds doubled marks if it kills an adapter that has no journal', { timeout }, async () => {
    const result = await runScenario(
      {
        ...{ name: 'forgetful', store: 'none', kills: { failpointShare: 0.5, lifeMs: [20, 150] } },
        ...{ behind: { resetAfter: 0.05 }, storms: ['slow'] },
      },
      { seed: 7, forMs: 120_000, settleMs: 60_000, kills: 4, broken: 1, storms: 1 },
    )
    expect([result.kills >= 4, result.broken > 0, result.storms > 0]).toEqual([true, true, true])
    // Without a journal the adapter does not recognise a resend, so the service records the marks twice. The check must notice this.
    expect(result.findings.map(({ kind }) => kind)).toContain('doubled')
  })

  test(
    'finds no lost or doubled mark while connections on both sides of the adapter break and clients resend',
    { timeout },
    async () => {
      const { before, load } = scenarios.retries
      const scenario = { ...scenarios.broken, before, load }
      const { broken, replays } = await runShort(scenario, { broken: 10, replays: 4 })
      expect([broken > 5, replays > 2]).toEqual([true, true])
    },
  )

  test(
    'finds no lost or doubled mark while instances pause for longer than their lease and clocks jump',
    { timeout },
    async () => {
      const paused = { ...scenarios.paused, instances: 2, clock: 'injected' } as const
      const { pauses } = await runShort(paused, { pauses: 4, records: 60 })
      expect(pauses).toBeGreaterThan(0)
    },
  )

  test('finds no lost or doubled mark while it damages the file of the journal', { timeout }, async () => {
    const { damages } = await runShort({ ...scenarios.damaged, service: [] }, { kills: 1, damages: 1 })
    expect(damages).toBeGreaterThan(0)
  })

  const flip = async (scenario: typeof scenarios.flips | typeof scenarios.flipsInFile): Promise<void> => {
    const stages = { ...scenario.stages, gapMs: 400 }
    const bounds = { changes: 4, kills: 1, records: 60 }
    const { changes } = await runShort({ ...scenario, stages }, bounds)
    expect(changes).toBeGreaterThan(3)
  }

  test.skipIf(missingPostgres() !== undefined)(
    'finds no lost or doubled mark while a partner moves between V2 and V3, with two instances on one PostgreSQL',
    { timeout },
    () => flip(scenarios.flips),
  )

  test(
    'finds no lost or doubled mark while a partner moves between V2 and V3, with two workers on SQLite',
    { timeout },
    () => flip(scenarios.flipsInFile),
  )
})
