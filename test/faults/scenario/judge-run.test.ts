import { expect, test } from 'vitest'

import type { Finding } from '../check/check-history.ts'
import { judgeRun } from './judge-run.ts'
import type { RunResult } from './run-scenario.ts'

const quiet: RunResult = {
  name: 'killed, SQLite', seed: 1, startMs: 800, broken: 3, storms: 0, storeCrashes: 0, pauses: 20, clockSteps: 4, damages: 1,
  records: 500, replays: 10, settledMs: 2_500, findings: [], overtaken: 0, repeated: 0, changes: 0, stages: undefined, kills: 40, failpoints: 5, busy: 30, beforeReady: 1,
  recovering: 1, crashes: [],
} // prettier-ignore

const finding = (kind: Finding['kind']): Finding => ({ kind, of: 'w-000001', because: 'it is so' })
const judge = (
  results: readonly RunResult[],
  wanted: { kills: number; pauses: number } | undefined = { kills: 40, pauses: 20 },
): readonly string[] => judgeRun({ results, wanted, settleMs: 60_000, tookMs: 90_000 }).faults

test.each<[what: string, results: readonly RunResult[], faults: readonly string[]]>([
  ['enough happened and nothing was found', [quiet], []],
  ['something was found', [{ ...quiet, findings: [finding('lost'), finding('ledger'), finding('lost')] }], ['2 lost', '1 ledger']],
  ['a process ended by itself', [{ ...quiet, crashes: ['ended 1'] }], ['1 processes ended by themselves']],
  ['too few were killed', [{ ...quiet, kills: 39 }], ['39 kills are fewer than 40']],
  ['too few were paused', [{ ...quiet, pauses: 19 }], ['19 pauses are fewer than 20']],
  ['nothing was run', [], ['0 kills are fewer than 40', '0 pauses are fewer than 20', 'no scenario was run']],
])('the faults of a run in which %s', (_what, results, faults) => {
  expect(judge(results)).toEqual(faults)
}) // prettier-ignore

test('a part of the run may kill and pause as few as it does', () => {
  expect(
    judgeRun({ results: [{ ...quiet, kills: 0 }], wanted: undefined, settleMs: 1, tookMs: 1 }).faults,
  ).toEqual([])
})
