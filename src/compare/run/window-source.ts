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
import type { Checkpoint } from './run-files.ts'
import { planWindows, type Window } from './windows.ts'

/** What of both services is compared, and how. */
interface WindowSourceOptions extends Omit<CompareWindowOptions, 'maxRows'> {
  readonly fromMs: number
  /** The first moment after the last day. */
  readonly toMs: number
  /** True: registrations are compared after the marks. */
  readonly registrations: boolean
  /** Where the run goes on; undefined: at the beginning. */
  readonly resumed: Pick<Checkpoint, 'position' | 'failed'> | undefined
  /** Rows of a window at most, and about as many as one is to have. Default 50,000 and 8,000. */
  readonly rows?: { readonly max: number; readonly target: number }
}

/** Windows that fail one after another before a run ends: one that takes as long as its retries each would not come to an end. */
const MAX_FAILED_IN_A_ROW = 3

/** Errors that do not depend on the window. */
const REFUSALS: ReadonlySet<string> = new Set([
  'ADP_TOKEN',
  'ADP_FORBIDDEN',
  'ADP_SUBSCRIPTION_KEY',
  'ADP_NOT_FOUND',
  'ADP_USAGE',
  'ADP_CONFIGURATION',
])

/** A window that could not be read on both sides, and what counts of it unless it can be in the end. */
interface FailedWindow {
  readonly window: Window
  /** Undefined: it failed before the run was resumed. */
  readonly failure?: WindowFailure
  readonly unknown?: readonly Counted[]
}

/** Reads both services window by window, and those windows once more at the end that could not be read on both sides. */
export function createWindowSource(given: WindowSourceOptions): RunSource {
  const { fromMs, toMs, registrations, learners, resumed } = given
  const { max, target } = given.rows ?? { max: MAX_PAIR_ROWS, target: 8_000 }
  const options = { ...given, maxRows: max }
  const plan = planWindows({
    ...{ fromMs, toMs, registrations, targetRows: target, start: resumed?.position },
    lists: learners?.length ?? 1,
  })
  let position = plan.position()
  const failed = new Map<string, FailedWindow>(
    (resumed?.failed ?? []).map((window) => [nameOf(window), { window }]),
  )

  const take = (window: Window, results: readonly WindowResult[]): RunStep => {
    failed.delete(nameOf(window))
    for (const result of results) {
      const { failure } = result
      if (failure === undefined) continue
      const unknown = createTally()
      for (const record of recordsOf(result)) unknown.add(...record)
      failed.set(nameOf(failure.window), { window: failure.window, failure, unknown: unknown.counts() })
    }
    const compared = results.filter(({ failure }) => failure === undefined)
    return {
      records: compared.flatMap(recordsOf),
      noise: compared.flatMap(({ noise }) => [...noise.values()]),
      askedAgain: compared.reduce((sum, { asked }) => sum + asked, 0),
    }
  }
  const end = (kind: SourceEnd['kind'], ...refusal: readonly WindowFailure[]): SourceEnd => ({
    kind,
    failures: [...refusal, ...[...failed.values()].flatMap(({ failure }) => failure ?? [])],
    left: [...failed.values()].flatMap(({ unknown }) => unknown ?? []),
  })
  async function* steps(signal: AbortSignal): AsyncGenerator<RunStep, SourceEnd> {
    const again = function* (): Generator<Window> {
      yield* [...failed.values()].map(({ window }) => window)
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
          if (refusal !== undefined) return end('refused', refusal)
          position = plan.position()
          yield take(window, results)
          inARow = failures.length === 0 ? 0 : inARow + 1
          if (inARow === MAX_FAILED_IN_A_ROW) return end('failing')
        }
      }
      return end('done')
    } catch (cause) {
      if (signal.aborted) return end('stopped')
      throw cause
    }
  }
  return {
    steps,
    position: () => ({ position, failed: [...failed.values()].map(({ window }) => window) }),
    progress: () => ({ done: plan.daysBefore(position), total: plan.days }),
  }
}

function recordsOf({ window: { kind }, rows }: WindowResult): RunStep['records'] {
  return rows.map((row) => {
    if (kind === 'registrations') return [row.comparison, { kind }]
    const { day, codeClass } = describeMark(row)
    return [row.comparison, { kind, day, codeClass }]
  })
}

const nameOf = ({ kind, list, fromMs, toMs }: Window): string => `${kind} ${list} ${fromMs} ${toMs}`
