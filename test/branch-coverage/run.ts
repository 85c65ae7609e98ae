import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

import build from '../build.ts'
import { countBranches } from './count-branches.ts'
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

/** Test folders that are not counted. */
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
  const { branches, lines, total, uncovered } = await countBranches(root, folder, seen)
  missed.push(...uncovered)
  const isEnough = branches >= thresholds[folder]
  if (!isEnough) below.push(folder)
  console.log(
    `${folder.padEnd(10)} ${branches.toFixed(1)} % of ${total} branches (at least ${thresholds[folder]} %), ` +
      `${lines.toFixed(1)} % of lines${isEnough ? '' : ': too few branches'}`,
  )
}
writeFileSync(join(output, 'uncovered.txt'), `${missed.join('\n')}\n`)
rmSync(raw, { recursive: true })
const haveOthersPassed = await otherTests
process.stdout.write(readFileSync(printed))
if (!haveCountedPassed || !haveOthersPassed || below.length > 0) process.exitCode = 1
