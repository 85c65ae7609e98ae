import { expect, test } from 'vitest'

import type { Finding } from '../check/finding.ts'
import { judgeRun, noCounts, printResults, type RunResult, type Wanted } from './report.ts'

const quiet: RunResult = {
  ...{ name: 'killed', seed: 3, startMs: 800, settledMs: 2_500, findings: [], crashes: [] },
  ...{ ...noCounts, pauses: 20, records: 500, kills: 40, busy: 30, overtaken: 0, repeated: 0, stages: undefined },
} // prettier-ignore

const finding = (kind: Finding['kind']): Finding => ({ kind, of: 'w-000001', because: 'it is so' })
const judge = (results: readonly RunResult[], wanted: Wanted): readonly string[] =>
  judgeRun({ results, wanted, settleMs: 60_000, tookMs: 90_000 }).faults

test.each<[what: string, results: readonly RunResult[], faults: readonly string[]]>([
  ['enough happened and nothing was found', [quiet], []],
  ['something was found', [{ ...quiet, findings: [finding('lost'), finding('ledger'), finding('lost')] }], ['2 lost', '1 ledger']],
  ['a process ended by itself', [{ ...quiet, crashes: ['ended 1'] }], ['1 processes ended by themselves']],
  ['too few processes were killed', [{ ...quiet, kills: 39 }], ['39 kills are fewer than 40']],
  ['too few processes were paused', [{ ...quiet, pauses: 19 }], ['19 pauses are fewer than 20']],
  ['nothing was run', [], ['0 kills are fewer than 40', '0 pauses are fewer than 20', 'no scenario was run']],
])('judgeRun lists the faults of a run in which %s', (_what, results, faults) => {
  expect(judge(results, { kills: 40, pauses: 20 })).toEqual(faults)
}) // prettier-ignore

test('judgeRun requires no minimum number of kills and pauses if none is given', () => {
  expect(judge([{ ...quiet, kills: 0 }], {})).toEqual([])
})

test('printResults lists the seed and every finding of a run', () => {
  const bad: RunResult = { ...quiet, name: 'bad', findings: [finding('lost')] }
  const lines = printResults([quiet, bad]).split('\n')
  expect(lines.slice(4)).toEqual(['bad (seed 3): lost w-000001: it is so', ''])
  expect(lines[3]).toMatch(/^ +all +80 /)
  expect(lines[1]).toMatch(/^ +killed +3 +40 /)
})
