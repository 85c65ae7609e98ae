import { missingPostgres, startPostgres } from '../../support/start-postgres.ts'
import type { RunResult } from '../scenario/run-scenario.ts'
import { runTimes } from './run-times.ts'

/** Runs at the same time: each waits most of its time. */
const LANES = 3
/** One run in so many has its journal in PostgreSQL. */
const POSTGRES_EVERY = 5

/** `runTimes` for `count` seeds from `seed` on; `onResult` is called with each result as it comes. */
export async function runSeeds(
  seed: number,
  count: number,
  logFolder: string | undefined,
  onResult: (result: RunResult) => void,
): Promise<RunResult[]> {
  const postgres = missingPostgres() === undefined ? await startPostgres() : undefined
  const seeds = Array.from({ length: count }, (_, index) => seed + index)
  const results: RunResult[] = []
  const work = async (): Promise<void> => {
    for (let next = seeds.shift(); next !== undefined; next = seeds.shift()) {
      const createDatabase =
        postgres !== undefined && next % POSTGRES_EVERY === 0 ? () => postgres.createDatabase() : undefined
      const result = await runTimes({ seed: next, createDatabase, logFolder })
      results.push(result)
      onResult(result)
    }
  }
  try {
    await Promise.all(Array.from({ length: LANES }, work))
  } finally {
    await postgres?.close()
  }
  return results.sort((one, other) => one.seed - other.seed)
}
