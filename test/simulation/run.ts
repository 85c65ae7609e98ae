import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { rmSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'

import { numberOption } from '../support/number-option.ts'
import type { Finding } from './sent.ts'
import { addCoverage, describeCoverage, noCoverage, type Coverage } from './coverage.ts'
import { runHistory } from './history.ts'
import { mutants } from './mutants.ts'
import { shrink } from './shrink.ts'

/**
 * `npm run test:simulation`: runs histories of the write engine in simulated time on all cores: `--histories` of them (default 100,000),
 * with seeds from `--seed` (default 1) upwards. `--seed n` alone prints the events of that history, after shrinking it while it still shows
 * its finding. `--mutants` breaks one safeguard of the engine after another and runs histories until one of them has a finding; `--only
 * text` selects mutants by name. `--branches` writes a list of the branches of `writes` and `journal` that no history runs to
 * `coverage/simulation.txt`. The exit status is 1 if there is any finding, or if no history detects a mutant.
 */
const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    histories: { type: 'string' },
    mutants: { type: 'boolean', default: false },
    branches: { type: 'boolean', default: false },
    only: { type: 'string', default: '' },
  },
})

const MUTANT_HISTORIES = 10_000
const workers = availableParallelism()
const root = fileURLToPath(new URL('../../', import.meta.url))
// Loading modules takes as long as twenty histories, so their compiled code is cached.
const cache = join(root, 'node_modules/.cache/simulation')
const coverageFolder = join(root, 'coverage/simulation')

interface FailedHistory {
  readonly seed: number
  readonly findings: readonly Finding[]
}

interface Totals {
  readonly histories: number
  readonly records: number
  readonly simulatedMs: number
  readonly reached: Coverage
}

/** Runs histories in parallel processes. With `mutant`, the engine has the mutant's defect, and the run ends with the first finding. */
async function runAll(
  from: number,
  count: number,
  mutant?: string,
): Promise<{ found: FailedHistory[]; totals: Totals }> {
  const found: FailedHistory[] = []
  let totals: Totals = { histories: 0, records: 0, simulatedMs: 0, reached: noCoverage }
  const children = Array.from({ length: workers }, (_, index) => {
    const own = Math.ceil((count - index) / workers)
    const args = [from + index, own, workers].map(String)
    const flags =
      mutant === undefined ? [] : ['--import', new URL('./break-safeguard.ts', import.meta.url).href]
    const child = spawn(
      process.execPath,
      [
        '--disable-warning=ExperimentalWarning',
        '--max-semi-space-size=64',
        '--single-threaded-gc',
        ...flags,
        new URL('./worker.ts', import.meta.url).pathname,
        ...args,
        ...(mutant === undefined ? [] : ['--first']),
      ],
      {
        stdio: ['ignore', 'pipe', 'inherit'],
        // V8 does not count the coverage of cached code.
        env: {
          ...process.env,
          MUTANT: mutant,
          ...(values.branches ? { NODE_V8_COVERAGE: coverageFolder } : { NODE_COMPILE_CACHE: cache }),
        },
      },
    )
    createInterface(child.stdout).on('line', (line) => {
      const message = JSON.parse(line) as FailedHistory | Totals
      if ('seed' in message) {
        found.push(message)
        if (mutant !== undefined) for (const other of children) if (other !== child) other.kill()
      } else {
        totals = {
          histories: totals.histories + message.histories,
          records: totals.records + message.records,
          simulatedMs: totals.simulatedMs + message.simulatedMs,
          reached: addCoverage(totals.reached, message.reached),
        }
      }
    })
    return child
  })
  await Promise.all(
    children.map(async (child) => {
      const [status, signal] = (await once(child, 'exit')) as [number | null, string | null]
      if (status !== 0 && signal === null)
        throw new Error(
          `A worker process ended with exit status ${String(status)}. Its histories are incomplete.`,
        )
    }),
  )
  return { found: found.sort((one, other) => one.seed - other.seed), totals }
}

async function printHistory(seed: number): Promise<boolean> {
  const result = await runHistory(seed, { isTold: true })
  const shown = result.findings.length === 0 ? result : await shrink(result)
  console.log(shown.log.join('\n'))
  for (const { kind, subject, reason } of shown.findings) console.log(`${kind} ${subject}: ${reason}`)
  return result.findings.length === 0
}

async function findMutants(): Promise<boolean> {
  let areFound = true
  for (const { name } of mutants.filter((one) => one.name.includes(values.only))) {
    const startedMs = performance.now()
    const last = numberOption('histories', values.histories ?? String(MUTANT_HISTORIES))
    let first: FailedHistory | undefined
    for (let from = 1; ;) {
      first = (await runAll(from, last + 1 - from, name)).found[0]
      // A finding that the unbroken engine also shows does not detect the mutant.
      if (first === undefined || (await runHistory(first.seed)).findings.length === 0) break
      from = first.seed + 1
    }
    areFound &&= first !== undefined
    const result = first === undefined ? 'NOT FOUND' : `seed ${first.seed}: ${first.findings[0]?.kind ?? ''}`
    console.log(`${name.padEnd(60)} ${result} (${((performance.now() - startedMs) / 1_000).toFixed(1)} s)`)
  }
  return areFound
}

async function runHistories(from: number, count: number): Promise<boolean> {
  const startedMs = performance.now()
  const { found, totals } = await runAll(from, count)
  for (const { seed, findings } of found)
    for (const { kind, subject, reason } of findings)
      console.log(`seed ${seed}: ${kind} ${subject}: ${reason.slice(0, 400)}`)
  const seconds = (performance.now() - startedMs) / 1_000
  for (const line of describeCoverage(totals.reached)) console.log(line)
  if (values.branches) await describeBranches()
  console.log(
    `${totals.histories} histories, ${totals.records} records, ${Math.round(totals.simulatedMs / 3_600_000)} simulated hours in ${seconds.toFixed(1)} s: ` +
      (found.length === 0 ? 'nothing was found' : `${found.length} with findings`),
  )
  return found.length === 0
}

async function describeBranches(): Promise<void> {
  const { countBranches } = await import('../branch-coverage/count-branches.ts')
  const { readCoverage } = await import('../branch-coverage/read-coverage.ts')
  const covered = readCoverage(coverageFolder, pathToFileURL(join(root, 'src/')).href)
  const missed: string[] = []
  for (const folder of ['writes', 'journal']) {
    const { branches, total, uncovered } = await countBranches(root, folder, covered)
    missed.push(...uncovered)
    console.log(`${folder}: ${branches.toFixed(1)} % of ${total} branches`)
  }
  writeFileSync(`${coverageFolder}.txt`, `${missed.join('\n')}\n`)
}

const seed = numberOption('seed', values.seed ?? '1')
if (values.branches) rmSync(coverageFolder, { recursive: true, force: true })
const hasPassed = values.mutants
  ? await findMutants()
  : values.seed !== undefined && values.histories === undefined
    ? await printHistory(seed)
    : await runHistories(seed, numberOption('histories', values.histories ?? '100000'))
process.exitCode = hasPassed ? 0 : 1
