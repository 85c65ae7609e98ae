import { expect, test } from 'vitest'

import type { Finding } from '../check/check-history.ts'
import { judgeRun } from './judge-run.ts'
import { printSummary } from './print-results.ts'
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

test('a run in which enough happened and nothing was found has passed', () => {
  expect(judge([quiet])).toEqual([])
  const { text } = judgeRun({ results: [quiet, quiet], wanted: undefined, settleMs: 60_000, tookMs: 90_000 })
  expect(text.split('\n').map((line) => line.replace(/ +/g, ' '))).toEqual([
    'kills 80, 60 of them at work',
    'pauses 40',
    'clock steps 8',
    'damages 2',
    'stage changes 0',
    'broken 6 connections, requests and replies',
    'records 1000, 20 batches replayed',
    'final within 2.5 s of 60 s allowed',
    'took 1.5 minutes',
    'PASSED: nothing was found',
  ])
})

test.each([
  ['something was found', [{ ...quiet, findings: [finding('lost'), finding('ledger'), finding('lost')] }], ['2 lost', '1 ledger']],
  ['a process ended by itself', [{ ...quiet, crashes: ['ended 1'] }], ['1 processes ended by themselves']],
  ['too few were killed', [{ ...quiet, kills: 39 }], ['39 kills are fewer than 40']],
  ['too few were paused', [{ ...quiet, pauses: 19 }], ['19 pauses are fewer than 20']],
  ['nothing was run', [], ['0 kills are fewer than 40', '0 pauses are fewer than 20', 'no scenario was run']],
])('a run in which %s has failed', (_what, results, faults) => {
  expect(judge(results)).toEqual(faults)
}) // prettier-ignore

test('a part of the run may kill and pause as few as it does', () => {
  expect(
    judgeRun({ results: [{ ...quiet, kills: 0 }], wanted: undefined, settleMs: 1, tookMs: 1 }).faults,
  ).toEqual([])
})

test('the summary has a line for each scenario with what was found in it', () => {
  const lines = printSummary([quiet, { ...quiet, findings: [finding('doubled')], crashes: ['ended 1'] }])
    .split('\n')
    .map((line) => line.trim().replace(/ +/g, ' '))
  expect(lines.slice(1, 3)).toEqual([
    'killed, SQLite 1 40 20 4 1 0 500 0.8 2.5 none',
    'killed, SQLite 1 40 20 4 1 0 500 0.8 2.5 1 doubled, 1 crashes',
  ])
})
