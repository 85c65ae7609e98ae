import { describeMark, MAX_PAIR_ROWS } from '../diff/index.ts'
import { type Counted, createTally } from '../tally.ts'
import {
  beginWindow,
  compareWindow,
  type CompareWindowOptions,
  type WindowFailure,
  type WindowRead,
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
  /** Rows of a window at most, and about as many as one is to have. Default 50,000 and 8,000: two windows of both sides are in memory at a time. */
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

/** A window that is being read. */
interface Reading {
  readonly window: Window
  readonly read: Promise<WindowRead>
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
  let failed: readonly Window[] = resumed?.failed ?? []
  const failures = new Map<
    string,
    { readonly failure: WindowFailure; readonly unknown: readonly Counted[] }
  >()

  const take = (window: Window, results: readonly WindowResult[]): RunStep => {
    failed = failed.filter((one) => nameOf(one) !== nameOf(window))
    failures.delete(nameOf(window))
    for (const result of results) {
      const { failure } = result
      if (failure === undefined) continue
      const unknown = createTally()
      for (const record of recordsOf(result)) unknown.add(...record)
      failed = [...failed, failure.window]
      failures.set(nameOf(failure.window), { failure, unknown: unknown.counts() })
    }
    const compared = results.filter(({ failure }) => failure === undefined)
    return {
      records: compared.flatMap(recordsOf),
      noise: compared.flatMap(({ noise }) => [...noise.values()]),
      askedAgain: compared.reduce((sum, { asked }) => sum + asked, 0),
    }
  }
  const end = (kind: SourceEnd['kind'], refusal?: WindowFailure): SourceEnd => {
    const left = [...failures.values()]
    const inOrder = left
      .map(({ failure }) => failure)
      .sort(({ window: one }, { window: other }) => one.list - other.list || one.fromMs - other.fromMs)
    return {
      kind,
      failures: refusal === undefined ? inOrder : [refusal, ...inOrder],
      left: left.flatMap(({ unknown }) => unknown),
    }
  }
  async function* steps(signal: AbortSignal): AsyncGenerator<RunStep, SourceEnd> {
    const unneeded = new AbortController()
    const begin = (window: Window | undefined): Reading | undefined => {
      if (window === undefined) return undefined
      const read = beginWindow(options, window, AbortSignal.any([signal, unneeded.signal]))
      // While it is read ahead, it is not awaited.
      read.catch(() => undefined)
      return { window, read }
    }
    let inARow = 0
    let retried: Window[] | undefined
    const next = (): Reading | undefined => {
      const window = retried === undefined ? plan.next() : retried.shift()
      if (window !== undefined || retried !== undefined) return begin(window)
      retried = [...failed]
      inARow = 0
      return begin(retried.shift())
    }
    try {
      for (let reading = next(); reading !== undefined;) {
        const { window } = reading
        const read = await reading.read
        if (retried === undefined) plan.fit(window, rowsOf(read))
        const place = plan.position()
        // One window is read while the one before is compared; after a failure it is first decided whether there is a next one.
        const isSound = retried === undefined && read.v2.kind === 'rows' && read.v3.kind === 'rows'
        const ahead = isSound ? begin(plan.next()) : undefined
        const results = await compareWindow(options, window, read, signal)
        const found = results.flatMap(({ failure }) => failure ?? [])
        const refusal = found.find(({ cause }) => REFUSALS.has(cause.code))
        if (refusal !== undefined) return end('refused', refusal)
        position = place
        yield take(window, results)
        inARow = found.length === 0 ? 0 : inARow + 1
        if (inARow === MAX_FAILED_IN_A_ROW) return end('failing')
        reading = ahead ?? next()
      }
      return end('done')
    } catch (cause) {
      if (signal.aborted) return end('stopped')
      throw cause
    } finally {
      unneeded.abort()
    }
  }
  return {
    steps,
    position: () => ({ position, failed: [...failed] }),
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

function rowsOf({ v2, v3 }: WindowRead): number {
  const count = (read: WindowRead['v2']): number =>
    read.kind === 'rows' ? read.rows.length : read.kind === 'tooMany' ? Infinity : 0
  return Math.max(count(v2), count(v3))
}
