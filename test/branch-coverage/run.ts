import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

import build from '../build.ts'
import { countBranches } from './count-branches.ts'
import { readCoverage } from './read-coverage.ts'

/**
 * `npm run test:coverage` runs all tests except `*.long.test.ts` once, in two runs side by side, because many tests wait and one run would
 * not use both cores. The first run executes the tests of the folders in `thresholds` and `mixed` on the TypeScript source, and fails below
 * the thresholds. Node.js strips types without moving code, so the counts of all processes can be added. The second run executes the other
 * tests on the built program. `coverage/uncovered.txt` lists each branch that never ran.
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
/** Tests of a command that is the only caller of parts of the journal. */
const ofCli = 'test/cli/journal.test.ts'
const mixed = ['e2e', 'walls', 'simulation']
const counted = [...[...folders, ...mixed].map((name) => `test/${name}/`), ofCli]
/** Tests that are not counted, because separate programs do their work or because they measure time. */
const withoutCounts = [
  ...['back-under-load', 'handed-over', 'marker-sweep', 'package', 'stages-live'].map(
    (name) => `e2e/${name}`,
  ),
  'walls/holds',
].map((name) => `test/${name}.slow.test.ts`)

const root = fileURLToPath(new URL('../../', import.meta.url))
const output = join(root, 'coverage')
const raw = join(output, 'v8')

const others = [
  ...readdirSync(join(root, 'test'))
    .map((name) => `test/${name}`)
    .filter((path) => !counted.some((own) => `${path}/`.startsWith(own))),
  ...withoutCounts,
]

interface RunOptions {
  readonly env: NodeJS.ProcessEnv
  readonly workers: number
  /** The output of a run: an open file, or the output of this program. */
  readonly prints: number | 'inherit'
}

async function runTests(
  tests: readonly string[],
  excluded: readonly string[],
  { env, workers, prints }: RunOptions,
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
// With more workers, a machine with two cores becomes so slow that stores time out in some tests.
const otherTests = runTests(others, [ofCli], { env: {}, workers: 3, prints: openSync(printed, 'w') })
const haveCountedPassed = await runTests(counted, withoutCounts, {
  env: coverage,
  workers: 2,
  prints: 'inherit',
})
const covered = readCoverage(raw, pathToFileURL(join(root, 'src/')).href)
const missed: string[] = []
const below: string[] = []
for (const folder of folders) {
  const { branches, lines, total, uncovered } = await countBranches(root, folder, covered)
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
