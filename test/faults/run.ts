import { mkdirSync } from 'node:fs'
import { parseArgs } from 'node:util'

import { numberOption } from '../support/number-option.ts'
import { startCli } from '../cli/run-cli.ts'
import { keepCompiledCode } from '../support/keep-compiled-code.ts'
import { missingPostgres } from '../support/start-postgres.ts'
import { missingSystemClock } from './clocks/clocks.ts'
import {
  judgeRun,
  printResults,
  printSummary,
  type RunResult,
  sumOf,
  type Wanted,
} from './scenario/report.ts'
import { type RunBounds, runScenario } from './scenario/run-scenario.ts'
import { type Scenario, scenarios } from './scenario/scenario.ts'
import { runSeeds } from './times/run-times.ts'

/**
 * `npm run test:faults`: runs all scenarios for about ten minutes, and then kills and pauses processes until there were 1,000 kills and 500
 * pauses. The exit status is 1 after a finding, after a process that ended by itself, and after a whole run with too few kills or pauses.
 *
 * - `--seed n` draws the same faults again, `--minutes n` (default 10) sets the length, and `--logs folder` stores the logs of the adapters.
 * - `--only name` runs one scenario. `flips` continues until there were 300 stage changes, 300 kills and 100 pauses,
 *   but at most for twice the minutes.
 * - `--only changingTimes` makes `--seeds n` short runs (default 100) with the seeds from `--seed` upwards.
 */
const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: String(1 + Math.floor(Math.random() * 9_999)) },
    only: { type: 'string' },
    minutes: { type: 'string', default: '10' },
    seeds: { type: 'string', default: '100' },
    logs: { type: 'string' },
  },
})

/**
 * The minimum number of events for each planned minute, for a run of all scenarios and for a run of `flips` alone. On a slow machine
 * processes start slowly, so a run may need more time to reach the minimum.
 */
const WHOLE = { kills: 100, pauses: 50 } as const
const FLIPS = { changes: 30, kills: 30, pauses: 10 } as const
/** The number of runs with changing times for each minute of a whole run. */
const SEEDS_A_MINUTE = 1

/** The time within which every record must be final once the faults are over. */
const SETTLE_MS = 60_000

type Part = readonly [name: keyof typeof scenarios, share: number]

/**
 * Scenarios that run one after another, each with its share of the time. The remaining time is for settling. The tracks run side by side:
 * while one settles, starts processes or waits for a lease, the others keep the machine busy.
 */
const tracks: readonly (readonly Part[])[] = [
  [['killed', 0.37], ['killedInStorms', 0.1], ['killedWhileStale', 0.1], ['duplicates', 0.05], ['clients', 0.03], ['cutTimes', 0.05], ['roundedTimes', 0.05], ['ownTimesAhead', 0.05], ['hiddenValues', 0.05], ['killedWhileTimesChange', 0.05]],
  [['killed', 0.26], ['flipsInFile', 0.08], ['batched', 0.08], ['conflicts', 0.1], ['workers', 0.05], ['retries', 0.04], ['damaged', 0.06], ['pausedWorkers', 0.12], ['roundedMinutes', 0.04], ['ownTimesBehind', 0.04], ['clocks', 0.06]],
  [['together', 0.1], ['storeBroken', 0.1], ['restarted', 0.06], ['killed', 0.08], ['broken', 0.04], ['storms', 0.05], ['paused', 0.14], ['pausedTogether', 0.12], ['flips', 0.1], ['systemClocks', 0.05], ['clocksTogether', 0.06]],
] // prettier-ignore

const { only, logs } = values
const seed = numberOption('seed', values.seed)
const minutes = numberOption('minutes', values.minutes)
const totalMs = minutes * 60_000
const missing = missingPostgres()
const missingClock = missingSystemClock()
/** The minimum number of events per minute of this run. */
const perMinute: Wanted = only === undefined ? WHOLE : only === 'flips' ? FLIPS : {}
const wanted: Wanted = Object.fromEntries(
  Object.entries(perMinute).map(([name, count]) => [name, count * minutes]),
)

function isWanted(name: Part[0]): boolean {
  const { store, clock }: Scenario = scenarios[name]
  if (clock === 'system' && missingClock !== undefined) return false
  return (only ?? name) === name && (store !== 'postgres' || missing === undefined)
}

async function runTrack(parts: readonly Part[], number: number): Promise<RunResult[]> {
  const results: RunResult[] = []
  for (const [index, [name, share]] of parts.entries()) {
    if (!isWanted(name)) continue
    const forMs = totalMs * (only === undefined ? share : 1)
    results.push(await runPart(name, { seed: seed + 100 * number + index, forMs }))
  }
  return results
}

async function runPart(name: Part[0], bounds: Omit<RunBounds, 'settleMs'>): Promise<RunResult> {
  const result = await runScenario(scenarios[name], {
    ...bounds,
    settleMs: SETTLE_MS,
    logFolder: logs,
  })
  console.log(printResults([result]))
  return result
}

/** The short runs with changing times run after the other scenarios, because their adapters are in this process. */
async function runChangingTimes(): Promise<RunResult[]> {
  if (only !== undefined && only !== 'changingTimes') return []
  const count = only === undefined ? SEEDS_A_MINUTE * minutes : numberOption('seeds', values.seeds)
  return runSeeds(seed, Math.ceil(count), logs, (result) => console.log(printResults([result])))
}

/**
 * Continues until the minimum is reached: with `flips` alone, or with kills and pauses on all tracks. Stops after twice the minutes of the
 * run if a slow machine does not reach the minimum.
 */
async function reachMinimum(results: readonly RunResult[]): Promise<RunResult[]> {
  const left = (name: keyof Wanted): number => Math.max(0, (wanted[name] ?? 0) - sumOf(results, name))
  const [kills, pauses, changes] = [left('kills'), left('pauses'), left('changes')]
  const forMs = 2 * totalMs
  if (only === 'flips')
    return kills + pauses + changes === 0
      ? []
      : [await runPart('flips', { kills, pauses, changes, forMs, seed: seed + 1 })]
  const killers = kills > 0 ? tracks.length - (pauses > 0 ? 1 : 0) : 0
  const more: [Part[0], Partial<RunBounds>][] = [
    ...Array.from({ length: killers }, (): [Part[0], Partial<RunBounds>] => [
      'killed',
      { kills: Math.ceil(kills / killers) },
    ]),
    ...(pauses > 0 ? [['paused', { pauses }] as [Part[0], Partial<RunBounds>]] : []),
  ]
  return Promise.all(
    more.map(([name, bounds], number) => runPart(name, { ...bounds, forMs, seed: seed + 100 * number + 99 })),
  )
}

/** Starts and stops an adapter once, so that later starts find compiled code. A killed adapter stores no compiled code. */
async function warmUp(): Promise<void> {
  const adapter = startCli(['serve', '--v3', 'http://127.0.0.1:9', '--port', '0', '--journal', 'none'])
  await adapter.until(/ready \S+\n/)
  await adapter.stop()
}

keepCompiledCode()
if (logs !== undefined) mkdirSync(logs, { recursive: true })
await warmUp()
console.log(`seed ${seed}: run again with npm run test:faults -- --seed ${seed}`)
const startedMs = performance.now()
const parts = (await Promise.all(tracks.map(runTrack))).flat()
const results = [...parts, ...(await reachMinimum(parts)), ...(await runChangingTimes())]
const { faults, text } = judgeRun({
  results,
  wanted,
  settleMs: SETTLE_MS,
  tookMs: performance.now() - startedMs,
})
if (results.length > 1) console.log(printResults(results))
console.log(`${printSummary(results)}\n\nseed            ${seed}\n${text}`)
// A connection that a killed process left half open must not delay the end of the run.
process.exit(faults.length === 0 ? 0 : 1)
