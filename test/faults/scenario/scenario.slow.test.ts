import { expect, test } from 'vitest'

import { printResults } from './print-results.ts'
import { runScenario, type RunResult } from './run-scenario.ts'

test('a run without faults: every record is final, nothing is found', { timeout: 180_000 }, async () => {
  const bounds = { seed: 7, forMs: 60_000, settleMs: 60_000, records: 120 }
  const load = { impatience: 0, replayShare: 0, connections: 4 }
  const result = await runScenario({ name: 'calm', store: 'none', load }, bounds)
  const { name, kills, broken, storms, findings, crashes } = result
  expect({ name, kills, broken, storms, findings, crashes }).toEqual({
    name: 'calm', kills: 0, broken: 0, storms: 0, findings: [], crashes: [],
  }) // prettier-ignore
  expect(result.records).toBeGreaterThan(100)
})

test('a run that kills an adapter without a journal finds what that does', { timeout: 180_000 }, async () => {
  const kills = { failpointShare: 0.5, lifeMs: [20, 150] } as const
  const scenario = {
    name: 'forgetful',
    store: 'none',
    kills,
    behind: { resetAfter: 0.05 },
    storms: ['slow'],
  } as const
  const result = await runScenario(scenario, {
    seed: 7,
    forMs: 120_000,
    settleMs: 60_000,
    kills: 4,
    broken: 1,
    storms: 1,
  })
  expect([result.kills >= 4, result.broken > 0, result.storms > 0]).toEqual([true, true, true])
  // What was under way is sent again by its client and recorded twice; a run that cannot see that would be worth nothing.
  expect(result.findings.map(({ kind }) => kind)).toContain('doubled')
})

test('the table names the seed and every finding', () => {
  const calm: RunResult = {
    name: 'calm', seed: 3, kills: 0, failpoints: 0, busy: 0, beforeReady: 0, recovering: 0, startMs: 1, broken: 0, storms: 0, storeCrashes: 0, pauses: 0, clockSteps: 0, damages: 0, records: 5, replays: 0,
    findings: [], overtaken: 0, repeated: 0, changes: 0, stages: undefined, crashes: [], settledMs: 12,
  } // prettier-ignore
  const bad: RunResult = {
    ...calm,
    name: 'bad',
    findings: [{ kind: 'lost', of: 'w-000001', because: 'gone' }],
  }
  const lines = printResults([calm, bad]).split('\n')
  expect(lines.slice(4)).toEqual(['bad (seed 3): lost w-000001: gone', ''])
  expect(lines[3]).toMatch(/^ +all +0 /)
  expect(lines[1]).toMatch(/^ +calm +3 /)
})
