import { AdapterError } from '../../errors.ts'
import {
  beginWindow,
  compareWindow,
  type CompareWindowOptions,
  type WindowFailure,
  type WindowResult,
} from './compare-window.ts'
import type { WindowRead } from './read-window.ts'
import type { RunPosition, Window, WindowPlan } from './windows.ts'

/** How a run ended. `stopped`: by its signal. `failing`: too many windows in a row could not be read. */
export type RunEnd =
  | { readonly kind: 'done' | 'stopped' | 'failing' }
  /** A fault that every further window would have too, such as credentials that are refused. */
  | { readonly kind: 'refused'; readonly failure: WindowFailure }

export interface RunComparisonOptions extends CompareWindowOptions {
  readonly plan: WindowPlan
  /** Windows that failed before; they are read again at the end, as those that fail now. */
  readonly failed: readonly Window[]
  /** Takes the results of a window. The next window is compared when it has resolved. */
  readonly onWindow: (done: WindowDone) => Promise<void>
}

/** A window that was compared, in parts where it had to be divided. */
export interface WindowDone {
  readonly window: Window
  readonly results: readonly WindowResult[]
  /** Where the run goes on; undefined: the window had failed before and was read again. */
  readonly next: RunPosition | undefined
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

/**
 * Compares all windows of a plan in their order, then those that failed once more. One window is read while the one before is
 * compared. Rejects for faults of the program only.
 */
export async function runComparison(options: RunComparisonOptions, signal: AbortSignal): Promise<RunEnd> {
  const { plan, onWindow } = options
  const failed: Window[] = [...options.failed]
  let inARow = 0
  const finish = async (reading: Reading, next: RunPosition | undefined): Promise<RunEnd | undefined> => {
    const results: WindowResult[] = []
    const read = await reading.read
    if ('stopped' in read) return { kind: 'stopped' }
    await compareWindow(options, reading.window, read, signal, (result) => results.push(result))
    const failures = results.flatMap(({ failure }) => failure ?? [])
    const refusal = failures.find(({ cause }) => REFUSALS.has(cause.code))
    if (refusal !== undefined) return { kind: 'refused', failure: refusal }
    await onWindow({ window: reading.window, results, next })
    failed.push(...failures.map(({ window }) => window))
    inARow = failures.length === 0 ? 0 : inARow + 1
    return inARow < MAX_FAILED_IN_A_ROW ? undefined : { kind: 'failing' }
  }
  const ahead = new AbortController()
  const abort = (): void => ahead.abort(signal.reason)
  signal.addEventListener('abort', abort)
  if (signal.aborted) abort()
  try {
    for (let reading = begin(options, plan.next(), ahead.signal); reading !== undefined;) {
      const read = await reading.read
      if (!('stopped' in read)) plan.note(reading.window, rowsOf(read))
      const next = plan.position()
      // After a failure it is first decided whether there is a next one.
      const isSound = 'v2' in read && read.v2.kind === 'rows' && read.v3.kind === 'rows'
      const following = isSound ? begin(options, plan.next(), ahead.signal) : undefined
      const end = await finish(reading, next)
      if (end !== undefined) return end
      reading = following ?? begin(options, plan.next(), ahead.signal)
    }
    inARow = 0
    for (const window of failed.splice(0)) {
      const reading = begin(options, window, ahead.signal)
      const end = reading === undefined ? undefined : await finish(reading, undefined)
      if (end !== undefined) return end
    }
    return { kind: 'done' }
  } catch (cause) {
    if (signal.aborted) return { kind: 'stopped' }
    throw cause
  } finally {
    ahead.abort(new AdapterError('ADP_INTERNAL', 'The window is not needed any longer.'))
    signal.removeEventListener('abort', abort)
  }
}

/** A window that is being read. */
interface Reading {
  readonly window: Window
  /** Never rejects because of the signal: while it is read ahead, it is not awaited. */
  readonly read: Promise<WindowRead | { readonly stopped: true }>
}

function begin(
  options: CompareWindowOptions,
  window: Window | undefined,
  signal: AbortSignal,
): Reading | undefined {
  if (window === undefined) return undefined
  const read = beginWindow(options, window, signal).catch((cause: unknown) => {
    if (signal.aborted) return { stopped: true } as const
    throw cause
  })
  // A fault of the program is found when the window's turn comes.
  read.catch(() => undefined)
  return { window, read }
}

function rowsOf({ v2, v3 }: WindowRead): number {
  const count = (read: WindowRead['v2']): number =>
    read.kind === 'rows' ? read.rows.length : read.kind === 'tooMany' ? Infinity : 0
  return Math.max(count(v2), count(v3))
}
