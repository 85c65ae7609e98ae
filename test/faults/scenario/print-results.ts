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
  'lent',
  'ledger',
  'trusted',
]
const MAX_SHOWN = 20

type Column = readonly [head: string, value: (result: RunResult) => number]

const columns: readonly Column[] = [
  ['kills', (each) => each.kills],
  ['at work', (each) => each.busy],
  ['at failpoint', (each) => each.failpoints],
  ['recovering', (each) => each.recovering],
  ['idle', (each) => each.kills - each.busy - each.recovering],
  ['pauses', (each) => each.pauses],
  ['clock steps', (each) => each.clockSteps],
  ['damages', (each) => each.damages],
  ['broken', (each) => each.broken],
  ['storms', (each) => each.storms],
  ['store crashes', (each) => each.storeCrashes],
  ['records', (each) => each.records],
  ['replays', (each) => each.replays],
  ['overtaken', (each) => each.overtaken],
  ['changes', (each) => each.changes],
  ...kinds.map((kind): Column => [kind, (each) => each.findings.filter((one) => one.kind === kind).length]),
  ['crashes', (each) => each.crashes.length],
]
const times: readonly Column[] = [
  ['start ms', (each) => each.startMs],
  ['settled ms', (each) => each.settledMs],
]

/** Names of results that are numbers. */
type Counted = {
  [Name in keyof RunResult]: RunResult[Name] extends number ? Name : never
}[keyof RunResult]

/** The sum of one number over all runs. */
export function sumOf(results: readonly RunResult[], name: Counted): number {
  return results.reduce((sum, each) => sum + each[name], 0)
}

/** How many findings there are of each kind; kinds without one are left out. */
export function countFindings(
  results: readonly RunResult[],
): readonly (readonly [kind: Finding['kind'], count: number])[] {
  const findings = results.flatMap((each) => each.findings)
  return kinds
    .map((kind) => [kind, findings.filter((one) => one.kind === kind).length] as const)
    .filter(([, count]) => count > 0)
}

/** One line for each run: what happened to it, and what was found. */
export function printSummary(results: readonly RunResult[]): string {
  const head = ['scenario', 'seed', 'kills', 'pauses', 'clock steps', 'damages', 'changes', 'records', 'start s', 'final s', 'findings'] // prettier-ignore
  const seconds = (ms: number): string => (ms / 1_000).toFixed(1)
  const rows = results.map((each) => [
    each.name,
    ...[each.seed, each.kills, each.pauses, each.clockSteps, each.damages, each.changes, each.records].map(
      String,
    ),
    seconds(each.startMs),
    seconds(each.settledMs),
    describeFindings(each),
  ])
  return alignColumns([head, ...rows]).join('\n')
}

function describeFindings(result: RunResult): string {
  const found = countFindings([result]).map(([kind, count]) => `${count} ${kind}`)
  const crashes = result.crashes.length
  return [...found, ...(crashes > 0 ? [`${crashes} crashes`] : [])].join(', ') || 'none'
}

function alignColumns(cells: readonly (readonly string[])[]): string[] {
  const widths = (cells[0] ?? []).map((_, column) =>
    Math.max(...cells.map((row) => row[column]?.length ?? 0)),
  )
  return cells.map((row) => row.map((cell, column) => cell.padStart(widths[column] ?? 0)).join('  '))
}

/** A table with one line for each run and one for all of them, then what was found and how to run it again. */
export function printResults(results: readonly RunResult[]): string {
  const head = ['scenario', 'seed', ...[...columns, ...times].map(([name]) => name)]
  const rows = results.map((each) => [
    each.name,
    String(each.seed),
    ...[...columns, ...times].map(([, value]) => String(Math.round(value(each)))),
  ])
  const cells = [head, ...rows, ...(results.length > 1 ? [sumUp(results)] : [])]
  const table = alignColumns(cells)
  const details = results.flatMap(({ name, seed, findings, crashes, stages, repeated }) => [
    ...(stages === undefined
      ? []
      : [
          `${name} (seed ${seed}): ${describeStages(stages)}; ${repeated} records that V2 applied again over newer ones of V3`,
        ]),
    ...findings
      .slice(0, MAX_SHOWN)
      .map(({ kind, of, because, story }) =>
        [
          `${name} (seed ${seed}): ${kind} ${of}: ${because}`,
          ...(story === undefined ? [] : [`    ${story}`]),
        ].join('\n'),
      ),
    ...crashes.slice(0, MAX_SHOWN).map((crash) => `${name} (seed ${seed}): crash: ${crash}`),
  ])
  return [...table, ...details, ''].join('\n')
}

function describeStages(stages: NonNullable<RunResult['stages']>): string {
  const { made, forward, back, commands, refused, longestMs, heldMs, abandoned } = stages
  const reasons = Object.entries(refused).map(([reason, count]) => `${count} ${reason}`)
  return [
    `${made} changes of the stage: ${forward} forward, ${back} back, ${commands} of them by the command`,
    `refused: ${reasons.join(', ') || 'none'}`,
    `the longest step forward took ${Math.round(longestMs)} ms, all of them ${Math.round(heldMs / 1_000)} s`,
    `${abandoned} records that their clients might not send again`,
  ].join('; ')
}

/** Sums; of the times the longest. */
function sumUp(results: readonly RunResult[]): string[] {
  const sums = columns.map(([, value]) => results.reduce((sum, each) => sum + value(each), 0))
  const longest = times.map(([, value]) => Math.max(...results.map(value)))
  return ['all', '', ...[...sums, ...longest].map((value) => String(Math.round(value)))]
}
