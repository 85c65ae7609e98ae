import { availableParallelism, cpus, release } from 'node:os'

import { benchAdapter } from './adapter-bench.ts'
import { benchCompareLive } from './compare-live-bench.ts'
import { benchCompareRun } from './compare-run-bench.ts'
import { benchCompareDiff } from './compare-diff-bench.ts'
import { benchDecode } from './decode-bench.ts'
import { benchJournal } from './journal-bench.ts'
import { benchAdapterMemory, benchDecodeMemory } from './memory-bench.ts'
import { benchPassThrough } from './pass-through-bench.ts'
import { benchPostgres } from './postgres-bench.ts'
import { benchRelay } from './relay-bench.ts'
import { benchReads } from './read-bench.ts'
import { benchLatency } from './latency-bench.ts'
import { formatTable, type Row } from './report.ts'
import { benchSandbox } from './sandbox-bench.ts'

// `npm run bench` runs every benchmark and prints one table. A missed aim does not make the command fail, because times depend on other
// programs on the machine. A wrong result of a candidate makes the command fail.

const benches: readonly (readonly [string, () => Promise<Row[]>])[] = [
  ['decode', benchDecode],
  ['decode memory', benchDecodeMemory],
  ['adapter', benchAdapter],
  ['adapter memory', benchAdapterMemory],
  ['journal', benchJournal],
  ['journal in PostgreSQL', benchPostgres],
  ['latency', benchLatency],
  ['reads', benchReads],
  ['pass-through', benchPassThrough],
  ['relay', benchRelay],
  ['sandbox', benchSandbox],
  ['compare run', benchCompareRun],
  ['compare diff', benchCompareDiff],
  ['compare live', benchCompareLive],
]

const only = process.argv.slice(2)
const rows: Row[] = []
for (const [name, bench] of benches) {
  if (only.length > 0 && !only.includes(name)) continue
  process.stderr.write(`${name} ...\n`)
  try {
    rows.push(...(await bench()))
  } catch (cause) {
    // The other benchmarks still run, and the table shows their figures.
    console.error(cause)
    process.exitCode = 1
  }
}
const model = cpus()[0]?.model ?? 'unknown processor'
console.log(
  `Node ${process.version}, ${availableParallelism()} cores of ${model}, ${process.platform} ${release()}\n`,
)
console.log(formatTable(rows))
