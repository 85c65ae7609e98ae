import { parseArgs } from 'node:util'

import { missingPostgres } from '../support/start-postgres.ts'
import { isSound, printResults } from './scenario/print-results.ts'
import { runScenario, type RunResult } from './scenario/run-scenario.ts'
import { type Scenario, scenarios } from './scenario/scenario.ts'

/**
 * `npm run test:faults`: every scenario at full length, about ten minutes. `--seed n` draws the same faults again, `--only name`
 * runs one scenario, `--minutes n` makes all of it shorter or longer. Exit status 1 when anything was lost, doubled or untrue.
 */
const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: String(1 + Math.floor(Math.random() * 9_999)) },
    only: { type: 'string' },
    minutes: { type: 'string', default: '10' },
  },
})

/** Share of the time, runs side by side, and the kills after which a run may end. */
const parts: [name: keyof typeof scenarios, share: number, lanes: number, kills?: number][] = [
  ['killed', 0.5, 2, 550],
  ['killedInStorms', 0.06, 1],
  ['broken', 0.05, 1],
  ['batched', 0.04, 1],
  ['duplicates', 0.04, 1],
  ['storms', 0.06, 1],
  ['retries', 0.05, 1],
  ['workers', 0.05, 1],
  ['restarted', 0.06, 1],
  ['together', 0.07, 1],
]

const seed = Number(values.seed)
const totalMs = Number(values.minutes) * 60_000
const missing = missingPostgres()
const results: RunResult[] = []
console.log(`seed ${seed}: run again with npm run test:faults -- --seed ${seed}`)
for (const [name, share, lanes, kills] of parts) {
  const scenario: Scenario = scenarios[name]
  if ((values.only ?? name) !== name || (scenario.store === 'postgres' && missing !== undefined)) continue
  const forMs = totalMs * (values.only === undefined ? share : 1)
  const runs = Array.from({ length: lanes }, (_, lane) =>
    runScenario(scenario, {
      seed: seed + lane,
      forMs,
      settleMs: 60_000,
      ...(kills === undefined ? {} : { kills }),
    }),
  )
  const done = await Promise.all(runs)
  results.push(...done)
  console.log(printResults(done))
}
console.log(printResults(results))
process.exitCode = results.every(isSound) && results.length > 0 ? 0 : 1
