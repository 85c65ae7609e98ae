import type { Finding } from '../check/check-history.ts'
import type { RunResult } from './run-scenario.ts'

const kinds: Finding['kind'][] = [
  'lost',
  'doubled',
  'falseAnswer',
  'order',
  'unsettled',
  'stranger',
  'changedReply',
  'ledger',
]
const MAX_SHOWN = 20

/** True when nothing went wrong. */
export function isSound({ findings, crashes }: RunResult): boolean {
  return findings.length === 0 && crashes.length === 0
}

/** A table with one line for each run, then what was found and how to run it again. */
export function printResults(results: readonly RunResult[]): string {
  const head = ['scenario', 'seed', 'kills', 'at failpoint', 'start ms', 'broken', 'storms', 'store crashes', 'records',
    'replays', 'overtaken', ...kinds, 'crashes', 'settled ms'] // prettier-ignore
  const rows = results.map((each) => [
    each.name, each.seed, each.kills, each.failpoints, Math.round(each.startMs), each.broken, each.storms,
    each.storeCrashes, each.records, each.replays, each.overtaken,
    ...kinds.map((kind) => each.findings.filter((finding) => finding.kind === kind).length),
    each.crashes.length, Math.round(each.settledMs),
  ]) // prettier-ignore
  const cells = [head, ...rows.map((row) => row.map(String))]
  const widths = head.map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)))
  const table = cells.map((row) => row.map((cell, column) => cell.padStart(widths[column] ?? 0)).join('  '))
  const details = results.flatMap(({ name, seed, findings, crashes }) => [
    ...findings
      .slice(0, MAX_SHOWN)
      .map(({ kind, of, because }) => `${name} (seed ${seed}): ${kind} ${of}: ${because}`),
    ...crashes.slice(0, MAX_SHOWN).map((crash) => `${name} (seed ${seed}): crash: ${crash}`),
  ])
  return [...table, ...details, ''].join('\n')
}
