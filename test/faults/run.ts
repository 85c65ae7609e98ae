import { parseArgs } from 'node:util'

import { startCli } from '../cli/run-cli.ts'
import { missingPostgres } from '../support/start-postgres.ts'
import { isSound, printResults } from './scenario/print-results.ts'
import { type RunBounds, runScenario, type RunResult } from './scenario/run-scenario.ts'
import { type Scenario, scenarios } from './scenario/scenario.ts'

/**
 * `npm run test:faults`: every scenario at full length, about ten minutes, and then kills on until there were a thousand.
 * `--seed n` draws the same faults again, `--only name` runs one scenario, `--minutes n` makes all of it shorter or longer.
 * Exit status 1 when anything was lost, doubled or untrue, or was not final in time.
 */
const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: String(1 + Math.floor(Math.random() * 9_999)) },
    only: { type: 'string' },
    minutes: { type: 'string', default: '10' },
  },
})

/** How many processes are killed in a run of all scenarios: how long that takes depends on how fast they start. */
const KILLS_A_MINUTE = 100

/** When the faults are over, every record must be final within this time. */
const SETTLE_MS = 60_000

type Part = readonly [name: keyof typeof scenarios, share: number]

/**
 * Scenarios one after another, each with its share of the time; what is missing to the whole is for settling. The tracks run side
 * by side: while one settles, starts processes or waits for a lease, the others keep the machine busy.
 */
const tracks: readonly (readonly Part[])[] = [
  [['killed', 0.52], ['killedInStorms', 0.12], ['killedWhileStale', 0.12], ['duplicates', 0.12]],
  [['killed', 0.52], ['batched', 0.12], ['conflicts', 0.12], ['workers', 0.06], ['retries', 0.05]],
  [['together', 0.15], ['storeBroken', 0.15], ['restarted', 0.1], ['killed', 0.3], ['broken', 0.06], ['storms', 0.08]],
] // prettier-ignore

const seed = Number(values.seed)
const minutes = Number(values.minutes)
const totalMs = minutes * 60_000
const missing = missingPostgres()

function isWanted(name: Part[0]): boolean {
  const { store }: Scenario = scenarios[name]
  return (values.only ?? name) === name && (store !== 'postgres' || missing === undefined)
}

async function runTrack(parts: readonly Part[], number: number): Promise<RunResult[]> {
  const results: RunResult[] = []
  for (const [index, [name, share]] of parts.entries()) {
    if (!isWanted(name)) continue
    const forMs = totalMs * (values.only === undefined ? share : 1)
    results.push(await runPart(name, { seed: seed + 100 * number + index, forMs }))
  }
  return results
}

async function runPart(name: Part[0], bounds: Omit<RunBounds, 'settleMs'>): Promise<RunResult> {
  const result = await runScenario(scenarios[name], { ...bounds, settleMs: SETTLE_MS })
  console.log(printResults([result]))
  return result
}

/** Kills what is missing, on all tracks; where that takes half as long as everything before, it ends. */
async function killOn(results: readonly RunResult[]): Promise<RunResult[]> {
  const left = KILLS_A_MINUTE * minutes - results.reduce((sum, { kills }) => sum + kills, 0)
  if (values.only !== undefined || left <= 0) return []
  const kills = Math.ceil(left / tracks.length)
  const bounds = { forMs: totalMs / 2, kills }
  return Promise.all(
    tracks.map((_, number) => runPart('killed', { ...bounds, seed: seed + 100 * number + 99 })),
  )
}

/** Starts and stops an adapter once, so that all starts after it find compiled code. */
async function warmUp(): Promise<void> {
  const adapter = startCli(['serve', '--v3', 'http://127.0.0.1:9', '--port', '0', '--journal', 'none'])
  await adapter.until(/ready \S+\n/)
  await adapter.stop()
}

await warmUp()
console.log(`seed ${seed}: run again with npm run test:faults -- --seed ${seed}`)
const startedMs = performance.now()
const parts = (await Promise.all(tracks.map(runTrack))).flat()
const results = [...parts, ...(await killOn(parts))]
console.log(printResults(results))
const atWork = results.reduce((sum, { busy }) => sum + busy, 0)
const tookMinutes = (performance.now() - startedMs) / 60_000
console.log(
  `${atWork} processes killed at work in ${tookMinutes.toFixed(1)} minutes; every record must be final ${SETTLE_MS} ms after the faults`,
)
// A connection that a killed process left half open must not hold up the end of the run.
process.exit(results.every(isSound) && results.length > 0 ? 0 : 1)
