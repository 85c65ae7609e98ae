import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { numberOption } from '../../support/number-option.ts'
import { parseArgs } from 'node:util'

import { defects } from './defects.ts'
import { breakSources } from './break-sources.ts'

/**
 * `npm run test:compare` makes 300 comparison runs over 100 to 50,000 records of two interfaces with up to 200 known differences. Each
 * report is checked against the list of these differences. `-- --runs n` sets the number of runs, `--seed s` repeats a draw, `--scale
 * class` uses 30 learners instead of 720, and `--largest n` limits the records of a run. The exit status is 1 if a report was wrong.
 * `--defect name` breaks the comparison on purpose (defects.ts) before the runs. `--defects` does so for each defect in a separate process
 * and exits with status 1 if a defect was not found.
 */
const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '300' },
    seed: { type: 'string', default: String(1 + Math.floor(Math.random() * 999_999)) },
    scale: { type: 'string', default: 'school' },
    largest: { type: 'string', default: '50000' },
    defect: { type: 'string' },
    defects: { type: 'boolean', default: false },
  },
})

if (values.defects) {
  const found = findDefects(values.seed)
  process.exit(found.every(Boolean) ? 0 : 1)
}
const { defect } = values
if (defect !== undefined) {
  const broken = defects[defect]
  if (broken === undefined)
    throw new Error(`there is no defect "${defect}". Choose one of: ${Object.keys(defects).join(', ')}`)
  breakSources([broken])
}
// These modules are imported only now, because a defect changes modules while they are loaded.
const { compareFaces } = await import('./compare-faces.ts')
const { runCampaign } = await import('./run-campaign.ts')
const { sizeOfRun } = await import('./draw-run.ts')

const runs = numberOption('runs', values.runs)
const seed = numberOption('seed', values.seed)
const largest = numberOption('largest', values.largest)
const started = performance.now()
const { wrong, ...result } = await runCampaign({
  compare: compareFaces,
  runs,
  seed,
  scale: values.scale === 'class' ? 'class' : 'school',
  sizeOf: (run) => sizeOfRun(seed, run, largest),
  onRun: ({ run, records, differences, missed, false: wrongly }) => {
    if (missed.length + wrongly.length === 0) return
    console.log(
      `seed ${run.seed} ${run.face} ${run.from} to ${run.to}: ${records} records, ${differences} differences`,
    )
    for (const one of missed.slice(0, 10)) console.log(`  missed ${one}`)
    for (const one of wrongly.slice(0, 10)) console.log(`  false  ${one}`)
  },
})
const seconds = Math.round((performance.now() - started) / 1_000)
console.log(JSON.stringify({ seed, ...result, wrong: wrong.length, seconds }))
process.exitCode = wrong.length === 0 ? 0 : 1

/** Runs a short campaign with each defect. Returns for each defect whether the campaign found it. */
function findDefects(seed: string): boolean[] {
  return Object.keys(defects).map((name) => {
    const script = fileURLToPath(import.meta.url)
    const args = `--runs 16 --seed ${seed} --scale class --largest 2000 --defect`.split(' ')
    const { status, stdout } = spawnSync(process.execPath, [script, ...args, name], { encoding: 'utf8' })
    const summary = /"wrong":\d+/.exec(stdout)?.[0]
    // A campaign that did not complete has not found its defect.
    const isFound = status === 1 && summary !== undefined
    console.log(
      `${isFound ? 'found' : 'NOT FOUND'}: a comparer that ${name} (${summary ?? 'no result'} of 16)`,
    )
    return isFound
  })
}
