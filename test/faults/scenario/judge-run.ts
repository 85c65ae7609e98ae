import type { RunResult } from './run-scenario.ts'
import { countFindings, sumOf } from './print-results.ts'

/** How many processes a whole run kills and pauses at the least, and how often it changes a stage. */
export interface Wanted {
  readonly kills: number
  readonly pauses: number
  readonly changes?: number
}

/** What a run of scenarios is judged by. */
export interface Verdict {
  /** Why the run does not show what it is to show; empty for a run that does. */
  readonly faults: readonly string[]
  /** The verdict with the numbers behind it. */
  readonly text: string
}

export interface JudgedRun {
  readonly results: readonly RunResult[]
  /** Undefined for a part of the run, which shows what it shows. */
  readonly wanted: Wanted | undefined
  readonly settleMs: number
  readonly tookMs: number
}

/** Judges a run: nothing may be found, no process may end by itself, and enough must have happened to it. */
export function judgeRun({ results, wanted, settleMs, tookMs }: JudgedRun): Verdict {
  const happened = {
    kills: sumOf(results, 'kills'),
    pauses: sumOf(results, 'pauses'),
    changes: sumOf(results, 'changes'),
  }
  const { kills, pauses, changes } = happened
  const crashes = results.reduce((sum, each) => sum + each.crashes.length, 0)
  const found = countFindings(results)
  const faults = [
    ...found.map(([kind, count]) => `${count} ${kind}`),
    ...(crashes > 0 ? [`${crashes} processes ended by themselves`] : []),
    ...(['kills', 'pauses', 'changes'] as const)
      .filter((name) => happened[name] < (wanted?.[name] ?? 0))
      .map((name) => `${happened[name]} ${name} are fewer than ${wanted?.[name] ?? 0}`),
    ...(results.length === 0 ? ['no scenario was run'] : []),
  ]
  /** From the end of the faults until all was final, in the slowest scenario. */
  const longestMs = Math.max(0, ...results.map(({ settledMs }) => settledMs))
  const of = (least: number | undefined): string => (least === undefined ? '' : ` of ${least} wanted`)
  const lines = [
    `kills           ${kills}${of(wanted?.kills)}, ${sumOf(results, 'busy')} of them at work`,
    `pauses          ${pauses}${of(wanted?.pauses)}`,
    `clock steps     ${sumOf(results, 'clockSteps')}`,
    `damages         ${sumOf(results, 'damages')}`,
    `stage changes   ${changes}${of(wanted?.changes)}`,
    `broken          ${sumOf(results, 'broken')} connections, requests and replies`,
    `records         ${sumOf(results, 'records')}, ${sumOf(results, 'replays')} batches replayed`,
    `final within    ${(longestMs / 1_000).toFixed(1)} s of ${settleMs / 1_000} s allowed`,
    `took            ${(tookMs / 60_000).toFixed(1)} minutes`,
    faults.length === 0 ? 'PASSED: nothing was found' : `FAILED: ${faults.join('; ')}`,
  ]
  return { faults, text: lines.join('\n') }
}
