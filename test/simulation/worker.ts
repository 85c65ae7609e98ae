import { addCoverage, noCoverage } from './coverage.ts'
import { runHistory } from './history.ts'

/**
 * Runs histories in one process. The arguments are the first seed, the number of histories and the step between seeds. With `--first` the
 * process stops after the first history with a finding. The process prints a line of JSON for each history with a finding, and a line with
 * the totals.
 */
const [from = 1, count = 1, step = 1] = process.argv.slice(2).map(Number)
const untilFirst = process.argv.includes('--first')

let [records, simulatedMs, histories] = [0, 0, 0]
let reached = noCoverage
for (let index = 0; index < count; index += 1) {
  const result = await runHistory(from + index * step)
  histories += 1
  records += result.records
  simulatedMs += result.simulatedMs
  reached = addCoverage(reached, result.coverage)
  if (result.findings.length === 0) continue
  const { seed, findings } = result
  console.log(JSON.stringify({ seed, findings }))
  if (untilFirst) break
}
console.log(JSON.stringify({ histories, records, simulatedMs, reached }))
