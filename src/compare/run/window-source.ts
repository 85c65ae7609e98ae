import { describeMark } from '../diff/compare-mark.ts'
import { MAX_PAIR_ROWS } from '../diff/compare-pair.ts'
import { type Counted, createTally } from '../tally.ts'
import {
  compareWindow,
  type CompareWindowOptions,
  type WindowFailure,
  type WindowResult,
} from './compare-window.ts'
import type { RunSource, RunStep, SourceEnd } from './run-comparison.ts'
import { daysOf, planWindows, type Window } from './windows.ts'

interface WindowSourceOptions extends Omit<CompareWindowOptions, 'maxRows'> {
  readonly fromMs: number
  readonly toMs: number
  readonly registrations: boolean
  /** The maximum and the intended number of rows per window. Default: 50,000 and 8,000. */
  readonly rows?: { readonly max: number; readonly target: number }
}

/** The number of failed windows in a row after which the run stops, because each failed window takes the time of all its retries. */
const MAX_FAILED_IN_A_ROW = 3

/** The codes of errors that would recur for every window. */
const REFUSALS: ReadonlySet<string> = new Set([
  'ADP_TOKEN',
  'ADP_FORBIDDEN',
  'ADP_SUBSCRIPTION_KEY',
  'ADP_NOT_FOUND',
  'ADP_USAGE',
  'ADP_CONFIGURATION',
])

/** A window that could not be read on one side. `unknown` counts its records as unknown, unless a later read of the window succeeds. */
interface FailedWindow {
  readonly failure: WindowFailure
  readonly unknown: readonly Counted[]
}

/** Creates the source that reads both services window by window. Windows that failed are read once more at the end. */
export function createWindowSource(given: WindowSourceOptions): RunSource {
  const { fromMs, toMs, registrations, learners } = given
  const { max, target } = given.rows ?? { max: MAX_PAIR_ROWS, target: 8_000 }
  const options = { ...given, maxRows: max }
  const plan = planWindows({
    ...{ fromMs, toMs, registrations, targetRows: target },
    lists: learners?.length ?? 1,
  })
  let done = 0
  const failed = new Map<string, FailedWindow>()

  const toStep = (window: Window, results: readonly WindowResult[]): RunStep => {
    failed.delete(windowKeyOf(window))
    for (const result of results) {
      const { failure } = result
      if (failure === undefined) continue
      const unknown = createTally()
      for (const record of recordsOf(result)) unknown.add(...record)
      failed.set(windowKeyOf(failure.window), { failure, unknown: unknown.counts() })
    }
    const compared = results.filter(({ failure }) => failure === undefined)
    return {
      records: compared.flatMap(recordsOf),
      noise: compared.flatMap(({ noise }) => [...noise.values()]),
      askedAgain: compared.reduce((sum, { readAgain: asked }) => sum + asked, 0),
    }
  }
  const toEnd = (kind: SourceEnd['kind'], ...refusal: readonly WindowFailure[]): SourceEnd => ({
    kind,
    failures: [...refusal, ...[...failed.values()].map(({ failure }) => failure)],
    remainingCounts: [...failed.values()].flatMap(({ unknown }) => unknown),
  })
  async function* steps(signal: AbortSignal): AsyncGenerator<RunStep, SourceEnd> {
    const again = function* (): Generator<Window> {
      yield* [...failed.values()].map(({ failure }) => failure.window)
    }
    try {
      for (const windows of [plan.windows(), again()]) {
        let inARow = 0
        for (const window of windows) {
          const results = await compareWindow(options, window, signal)
          plan.fit(
            window,
            results.reduce((sum, { rows }) => sum + rows.length, 0),
          )
          const failures = results.flatMap(({ failure }) => failure ?? [])
          const refusal = failures.find(({ cause }) => REFUSALS.has(cause.code))
          if (refusal !== undefined) return toEnd('refused', refusal)
          done = Math.min(plan.days, done + daysOf(window))
          yield toStep(window, results)
          inARow = failures.length === 0 ? 0 : inARow + 1
          if (inARow === MAX_FAILED_IN_A_ROW) return toEnd('failing')
        }
      }
      return toEnd('done')
    } catch (cause) {
      if (signal.aborted) return toEnd('stopped')
      throw cause
    }
  }
  return { steps, progress: () => ({ done, total: plan.days }) }
}

function recordsOf({ window: { kind }, rows }: WindowResult): RunStep['records'] {
  return rows.map((row) => {
    if (kind === 'registrations') return [row.comparison, { kind }]
    const { day, codeClass } = describeMark(row)
    return [row.comparison, { kind, day, codeClass }]
  })
}

const windowKeyOf = ({ kind, list, fromMs, toMs }: Window): string => `${kind} ${list} ${fromMs} ${toMs}`
