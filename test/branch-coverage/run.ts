import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync, mkdirSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import type { Profiler } from 'node:inspector'
import { stripTypeScriptTypes } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

import {
  type CoverageMap,
  type CoverageMapData,
  createCoverageMap,
  type FileCoverage,
} from '@vitest/istanbul-lib-coverage'
import { convert } from 'ast-v8-to-istanbul'
import { parseSync } from 'vite'

import build from '../build.ts'
import { readCoverage } from './read-coverage.ts'

/**
 * `npm run test:coverage`: runs all tests, each once, but for `*.long.test.ts`, in two runs side by side. One has the tests of the layers and of
 * what they come together in: it runs the source, and what ran of its modules is counted; too little fails. Types are blanked out where they
 * stand, so that all counts are of the same text. The other has the rest, on what was built. Many tests wait for time to pass: two runs
 * keep both cores busy to the end. `coverage/uncovered.txt` names each branch that never ran.
 */
const thresholds = {
  v2: 95,
  translate: 95,
  writes: 89,
  reads: 90,
  journal: 87,
  upstream: 90,
  v3: 90,
  proxy: 90,
}
const folders = Object.keys(thresholds) as (keyof typeof thresholds)[]
/** Tests of the command line that is the only caller of some of the journal. */
const ofCli = 'test/cli/journal.test.ts'
const mixed = ['e2e', 'walls', 'simulation']
const counted = [...[...folders, ...mixed].map((name) => `test/${name}/`), ofCli]
/** Their work is done by programs, which count nothing, or is timed. */
const withoutCounts = [
  ...['back-under-load', 'handed-over', 'marker-sweep', 'package', 'stages-live'].map(
    (name) => `e2e/${name}`,
  ),
  'walls/holds',
].map((name) => `test/${name}.slow.test.ts`)

const root = fileURLToPath(new URL('../../', import.meta.url))
const output = join(root, 'coverage')
const raw = join(output, 'v8')

/** What is not counted. */
const others = [
  ...readdirSync(join(root, 'test'))
    .map((name) => `test/${name}`)
    .filter((path) => !counted.some((own) => `${path}/`.startsWith(own))),
  ...withoutCounts,
]

/** How a run differs from the other. */
interface Own {
  readonly env: NodeJS.ProcessEnv
  readonly workers: number
  /** Where it prints: an open file, or where this program does. */
  readonly prints: number | 'inherit'
}

async function runTests(
  tests: readonly string[],
  excluded: readonly string[],
  { env, workers, prints }: Own,
): Promise<boolean> {
  const vitest = join(root, 'node_modules/vitest/vitest.mjs')
  const options = [...excluded.map((file) => `--exclude=${file}`), `--maxWorkers=${workers}`]
  const args = [vitest, 'run', '--mode', 'all', ...options, ...process.argv.slice(2), ...tests]
  const child = spawn(process.execPath, args, {
    cwd: root,
    env: { ...process.env, MARKBRIDGE_IS_BUILT: '1', ...env },
    stdio: ['ignore', prints, prints],
  })
  const [status] = (await once(child, 'close')) as [number | null]
  return status === 0
}

/** A file that nothing loaded. */
function unused(url: string, length: number): Profiler.ScriptCoverage {
  const ranges = [{ startOffset: 0, endOffset: length, count: 0 }]
  return { scriptId: '0', url, functions: [{ functionName: '', ranges, isBlockCoverage: true }] }
}

async function toCoverage(
  path: string,
  seen: ReadonlyMap<string, Profiler.ScriptCoverage>,
): Promise<CoverageMap> {
  const url = pathToFileURL(path).href
  const code = stripTypeScriptTypes(readFileSync(path, 'utf8'))
  const coverage = seen.get(url) ?? unused(url, code.length)
  const { program } = parseSync(path, code)
  // The package that converts has types of its own for the same data.
  const data: unknown = await convert({ ast: program, code, wrapperLength: 0, coverage })
  return createCoverageMap(data as CoverageMapData)
}

/** The branches that never ran, as `file:line`. */
function uncovered({ path, branchMap, b }: FileCoverage): string[] {
  return Object.entries(branchMap).flatMap(([id, { type, loc, locations }]) =>
    (b[id] ?? []).flatMap((count, index) =>
      count > 0
        ? []
        : [`${path.slice(root.length)}:${locations[index]?.start.line ?? loc.start.line} ${type}`],
    ),
  )
}

function percent({ covered, total }: { covered: number; total: number }): number {
  return total === 0 ? 100 : (100 * covered) / total
}

rmSync(output, { recursive: true, force: true })
mkdirSync(raw, { recursive: true })
build()
const coverage = { NODE_V8_COVERAGE: raw, MARKBRIDGE_COVERAGE: raw }
const printed = join(output, 'others.txt')
// With more at a time, two cores are so slow that some tests take a store for one that does not answer.
const otherTests = runTests(others, [ofCli], { env: {}, workers: 3, prints: openSync(printed, 'w') })
const haveCountedPassed = await runTests(counted, withoutCounts, {
  env: coverage,
  workers: 2,
  prints: 'inherit',
})
const seen = readCoverage(raw, pathToFileURL(join(root, 'src/')).href)
const missed: string[] = []
const below: string[] = []
for (const folder of folders) {
  const map = createCoverageMap({})
  for (const file of globSync(`src/${folder}/**/*.ts`, { cwd: root }).sort()) {
    const own = await toCoverage(join(root, file), seen)
    map.merge(own)
    missed.push(...own.files().flatMap((path) => uncovered(own.fileCoverageFor(path))))
  }
  const { branches, lines } = map.getCoverageSummary()
  const isEnough = percent(branches) >= thresholds[folder]
  if (!isEnough) below.push(folder)
  console.log(
    `${folder.padEnd(10)} ${percent(branches).toFixed(1)} % of ${branches.total} branches (at least ${thresholds[folder]} %), ` +
      `${percent(lines).toFixed(1)} % of lines${isEnough ? '' : ': too few branches'}`,
  )
}
writeFileSync(join(output, 'uncovered.txt'), `${missed.join('\n')}\n`)
rmSync(raw, { recursive: true })
const haveOthersPassed = await otherTests
process.stdout.write(readFileSync(printed))
if (!haveCountedPassed || !haveOthersPassed || below.length > 0) process.exitCode = 1
