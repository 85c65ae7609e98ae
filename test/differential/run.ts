import { numberOption } from '../support/number-option.ts'
import { parseArgs } from 'node:util'

import { exceptions } from './exceptions.ts'
import { describeDifference } from './print-report.ts'
import { runReads } from './run-reads.ts'

/**
 * `npm run test:reads` sends 2,000 V2 reads from the grammar of OData, a third of them broken, to the V2 interface of the sandbox and to
 * the adapter in front of its V3 interface. `-- --reads n` sets the number of reads, `--seed s` repeats the reads of an earlier run,
 * `--scale school` uses 720 learners in place of 30, and `--shrink n` limits the number of differences that are shrunk. The exit status
 * is 1 if a difference has no exception (exceptions.ts) or an exception is stale.
 */
const { values } = parseArgs({
  options: {
    reads: { type: 'string', default: '2000' },
    seed: { type: 'string', default: String(1 + Math.floor(Math.random() * 999_999)) },
    scale: { type: 'string', default: 'class' },
    shrink: { type: 'string', default: '10' },
  },
})

const seed = numberOption('seed', values.seed)
const report = await runReads({
  reads: numberOption('reads', values.reads),
  seed,
  shrink: numberOption('shrink', values.shrink),
  ...(values.scale === 'school' ? { school: { scale: 'school' } } : {}),
})
for (const difference of report.differences.slice(0, 50)) console.log(describeDifference(difference))
for (const { name } of exceptions) console.log(`${String(report.exceptions[name] ?? 0).padStart(6)}  ${name}`)
const { reads, equal, excepted, different, stale, answers } = report
console.log(JSON.stringify({ seed, reads, equal, excepted, different, stale, answers }))
process.exitCode = different === 0 && stale.length === 0 ? 0 : 1
