import type { Checked } from '../check/check-history.ts'
import { findingKinds } from '../check/finding.ts'
import type { StageChangeCounts } from './stage-changes.ts'

/** The counts of a run, with their column headings (docs/fault-runs.md). */
const heads = {
  kills: 'kills',
  /** Included in the kills: kills of a process that was ready and left records open. */
  busy: 'at work',
  failpoints: 'at failpoint',
  /** Included in the kills: kills before the process was ready, while records waited for recovery. */
  recovering: 'recovering',
  pauses: 'pauses',
  clockSteps: 'clock steps',
  damages: 'damages',
  /** The number of connections, requests and replies that were broken or halted. */
  broken: 'broken',
  storms: 'storms',
  storeCrashes: 'store crashes',
  records: 'records',
  replays: 'replays',
  changes: 'changes',
} as const

export type CountName = keyof typeof heads
export type Counts = Readonly<Record<CountName, number>>

export const countNames = Object.keys(heads) as CountName[]
export const noCounts = Object.fromEntries(countNames.map((name) => [name, 0])) as Counts

/** The result of a run. */
export interface RunResult extends Checked, Counts {
  readonly name: string
  readonly seed: number
  /** The mean time of all adapters from start to ready. */
  readonly startMs: number
  /** The time from the end of the faults until every record was final. */
  readonly settledMs: number
  /** Unexpected ends of processes, with the last lines of the log. */
  readonly crashes: readonly string[]
  /** The results of all attempted stage changes, or `undefined` if none was attempted. */
  readonly stages: (StageChangeCounts & { readonly abandoned: number }) | undefined
}

type Column = readonly [head: string, value: (result: RunResult) => number]

const columns: readonly Column[] = [
  ...countNames.map((name): Column => [heads[name], (each) => each[name]]),
  ['idle', (each) => each.kills - each.busy - each.recovering],
  ['overtaken', (each) => each.overtaken],
  ...findingKinds.map((kind): Column => [kind, (each) => countKind([each], kind)]),
  ['crashes', (each) => each.crashes.length],
]
const times: readonly Column[] = [
  ['start ms', (each) => each.startMs],
  ['settled ms', (each) => each.settledMs],
]
const summarised = ['kills', 'pauses', 'clockSteps', 'damages', 'changes', 'records'] as const
const MAX_SHOWN = 20

export function sumOf(results: readonly RunResult[], name: CountName): number {
  return results.reduce((sum, each) => sum + each[name], 0)
}

function countKind(results: readonly RunResult[], kind: (typeof findingKinds)[number]): number {
  return results.flatMap(({ findings }) => findings).filter((one) => one.kind === kind).length
}

function countFindings(results: readonly RunResult[]): string[] {
  const counts = findingKinds.map((kind) => [countKind(results, kind), kind] as const)
  return counts.filter(([count]) => count > 0).map((count) => count.join(' '))
}

/** Formats one line for each run, with its events and findings. */
export function printSummary(results: readonly RunResult[]): string {
  const seconds = (ms: number): string => (ms / 1_000).toFixed(1)
  const found = (each: RunResult): string[] => {
    const crashes = each.crashes.length > 0 ? [`${each.crashes.length} crashes`] : []
    return [...countFindings([each]), ...crashes]
  }
  const rows = results.map((each) => [
    ...[each.name, each.seed, ...summarised.map((name) => each[name])].map(String),
    ...[seconds(each.startMs), seconds(each.settledMs), found(each).join(', ') || 'none'],
  ])
  const named = summarised.map((name) => heads[name])
  return alignColumns([['scenario', 'seed', ...named, 'start s', 'final s', 'findings'], ...rows])
}

function alignColumns(cells: readonly (readonly string[])[]): string {
  const widths = (cells[0] ?? []).map((_, column) =>
    Math.max(...cells.map((row) => row[column]?.length ?? 0)),
  )
  return cells
    .map((row) => row.map((cell, column) => cell.padStart(widths[column] ?? 0)).join('  '))
    .join('\n')
}

/** Formats a table with one line for each run and one for all runs, followed by the findings with their scenarios and seeds. */
export function printResults(results: readonly RunResult[]): string {
  const all = [...columns, ...times]
  const rounded = (values: readonly number[]): string[] => values.map((value) => String(Math.round(value)))
  const rows = results.map((each) => [
    ...[each.name, String(each.seed)],
    ...rounded(all.map(([, value]) => value(each))),
  ])
  const sums = columns.map(([, value]) => results.reduce((sum, each) => sum + value(each), 0))
  const longest = times.map(([, value]) => Math.max(...results.map(value)))
  const total = results.length > 1 ? [['all', '', ...rounded([...sums, ...longest])]] : []
  const table = alignColumns([['scenario', 'seed', ...all.map(([head]) => head)], ...rows, ...total])
  const details = results.flatMap(({ name, seed, findings, crashes, stages, repeated }) =>
    [
      ...(stages === undefined ? [] : [describeStages(stages, repeated)]),
      ...findings
        .slice(0, MAX_SHOWN)
        .map(({ kind, of, because, story }) => `${kind} ${of}: ${because}${story ? `\n    ${story}` : ''}`),
      ...crashes.slice(0, MAX_SHOWN).map((crash) => `crash: ${crash}`),
    ].map((line) => `${name} (seed ${seed}): ${line}`),
  )
  return [table, ...details, ''].join('\n')
}

function describeStages(stages: NonNullable<RunResult['stages']>, repeated: number): string {
  const { made, forward, back, commands, refused, longestMs, heldMs, abandoned } = stages
  const reasons = Object.entries(refused).map(([reason, count]) => `${count} ${reason}`)
  return [
    `${made} changes of the stage: ${forward} forward, ${back} back, ${commands} of them by the command`,
    `refused: ${reasons.join(', ') || 'none'}`,
    `the longest step forward took ${Math.round(longestMs)} ms, all of them ${Math.round(heldMs / 1_000)} s`,
    `${abandoned} records that their clients might not send again`,
    `${repeated} records that V2 applied again over newer ones of V3`,
  ].join('; ')
}

/** The minimum numbers of events in a run. */
export type Wanted = Partial<Record<'kills' | 'pauses' | 'changes', number>>

interface JudgedRun {
  readonly results: readonly RunResult[]
  /** Empty if the run has no minimum. */
  readonly wanted: Wanted
  readonly settleMs: number
  readonly tookMs: number
}

/**
 * Judges a run: there may be no finding, no process may end by itself, and enough events must have happened. `faults` lists what failed, and
 * `text` is the verdict with the numbers of the run.
 */
export function judgeRun({ results, wanted, settleMs, tookMs }: JudgedRun): {
  readonly faults: readonly string[]
  readonly text: string
} {
  const sum = (name: CountName): number => sumOf(results, name)
  const crashes = results.flatMap((each) => each.crashes).length
  const faults = [
    ...countFindings(results),
    ...(crashes > 0 ? [`${crashes} processes ended by themselves`] : []),
    ...(['kills', 'pauses', 'changes'] as const).flatMap((name) => {
      const { [name]: least = 0 } = wanted
      return sum(name) < least ? [`${sum(name)} ${name} are fewer than ${least}`] : []
    }),
    ...(results.length === 0 ? ['no scenario was run'] : []),
  ]
  const longestMs = Math.max(0, ...results.map(({ settledMs }) => settledMs))
  const of = (least: number | undefined): string => (least === undefined ? '' : ` of ${least} wanted`)
  const lines = [
    ['kills', `${sum('kills')}${of(wanted.kills)}, ${sum('busy')} of them at work`],
    ['pauses', `${sum('pauses')}${of(wanted.pauses)}`],
    ['clock steps', sum('clockSteps')],
    ['damages', sum('damages')],
    ['stage changes', `${sum('changes')}${of(wanted.changes)}`],
    ['broken', `${sum('broken')} connections, requests and replies`],
    ['records', `${sum('records')}, ${sum('replays')} batches replayed`],
    ['final within', `${(longestMs / 1_000).toFixed(1)} s of ${settleMs / 1_000} s allowed`],
    ['took', `${(tookMs / 60_000).toFixed(1)} minutes`],
  ] as const
  const verdict = faults.length === 0 ? 'PASSED: nothing was found' : `FAILED: ${faults.join('; ')}`
  return { faults, text: [...lines.map(([name, text]) => `${name.padEnd(16)}${text}`), verdict].join('\n') }
}
