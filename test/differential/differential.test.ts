import { readFileSync } from 'node:fs'

import { expect, it } from 'vitest'

import { exceptions } from './exceptions.ts'
import { runs } from '../support/long-run.ts'
import { describeDifference } from './print-report.ts'
import { runReads } from './run-reads.ts'

const READS = runs(150, 1_000)

it(
  `the adapter answers ${READS} V2 reads from the grammar of OData as the V2 interface of the sandbox does, except for the documented differences`,
  { timeout: 120_000 },
  async () => {
    const report = await runReads({ reads: READS, seed: 20_261_122, shrink: 3 })
    expect(report.differences.map(describeDifference)).toEqual([])
    expect(report.stale).toEqual([])
    expect(report.equal + report.excepted).toBe(READS)
    // The sample must be meaningful: many reads find records, some need pages, some are broken, and few need an exception.
    const { answers } = report
    expect(answers['records'] ?? 0).toBeGreaterThan(READS / 6)
    expect(answers['pages'] ?? 0).toBeGreaterThan(READS / 60)
    expect(answers['400'] ?? 0).toBeGreaterThan(READS / 6)
    expect(report.equal).toBeGreaterThan(READS / 2)
  },
)

it('docs/reads.md lists exactly the differences that the comparison of reads accepts', () => {
  const document = readFileSync(new URL('../../docs/reads.md', import.meta.url), 'utf8')
  const [, table = ''] = document.split('## Where reads differ from V2')
  const names = [...(table.split('\n## ', 1)[0] ?? '').matchAll(/^\| ([^|`]+?) +\|/gm)].map(
    ([, name]) => name,
  )
  expect(names.slice(1).toSorted()).toEqual(exceptions.map(({ name }) => name).toSorted())
})
