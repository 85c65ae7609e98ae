import { spawnSync } from 'node:child_process'
import { globSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
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

import { readCoverage } from './read-coverage.ts'

/**
 * `npm run test:coverage`: runs all tests, each once, but for `*.long.test.ts`. Those of the layers and what they come together in run first: what
 * ran of their modules is counted in the tests' own processes, in worker threads and in programs that were started, and too little fails.
 * They run from source: types are blanked out where they stand, so that all counts are of the same text. The others run after them, on
 * what was built. `coverage/uncovered.txt` names each branch that never ran.
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
const ofCli = ['test/cli/journal.test.ts', 'test/cli/workers/']
const counted = [...folders.map((name) => `test/${name}/`), 'test/e2e/', 'test/walls/', ...ofCli]
/** Programs here kill or stop themselves, and a process that is killed counts nothing. */
const withoutCounts = ['test/e2e/resends.slow.test.ts', 'test/e2e/paused-instance.slow.test.ts']

const root = fileURLToPath(new URL('../../', import.meta.url))
const output = join(root, 'coverage')
const raw = join(output, 'v8')

/** What is not counted: other folders, and files whose programs are killed. */
const others = [...readdirSync(join(root, 'test')).map((name) => `test/${name}`), ...withoutCounts].filter(
  (path) => !counted.some((own) => `${path}/`.startsWith(own)) || withoutCounts.includes(path),
)

function runTests(tests: readonly string[], excluded: readonly string[], env: NodeJS.ProcessEnv): boolean {
  const vitest = join(root, 'node_modules/vitest/vitest.mjs')
  const args = [...excluded.map((file) => `--exclude=${file}`), ...process.argv.slice(2), ...tests]
  const { status } = spawnSync(process.execPath, [vitest, 'run', '--mode', 'all', ...args], {
    cwd: root,
    env: { ...process.env, ...env },
    stdio: 'inherit',
  })
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
const passed = [
  runTests(counted, withoutCounts, { NODE_V8_COVERAGE: raw }),
  runTests(
    others,
    ofCli.map((path) => `${path}${path.endsWith('/') ? '**' : ''}`),
    {},
  ),
].every(Boolean)
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
if (!passed || below.length > 0) process.exitCode = 1
