import { AdapterError } from '../../errors.ts'
import { comparePair, plainly, type RecordDiff } from '../diff/index.ts'
import { askAgain, type AskAgainOptions } from './ask-again.ts'
import { leaveOutNoise, type Noise, noiseOf } from './compared-rows.ts'
import { writeMarkQuery, writeRegistrationQueries } from './queries.ts'
import { readWindow, type RowsRead, type WindowRead } from './read-window.ts'
import { splitWindow, type Window } from './windows.ts'

/** How windows are read and compared. */
export interface CompareWindowOptions extends AskAgainOptions {
  /** Learners whose records are compared, as lists that fit into a query each; undefined: all. */
  readonly learners: readonly (readonly string[])[] | undefined
}

/** What one reading of a window gave. Of a window that could not be read on both sides, the rows of one are `unknown`. */
export interface WindowResult {
  readonly window: Window
  readonly rows: readonly RecordDiff[]
  readonly noise: Noise
  /** Records that were asked again. */
  readonly asked: number
  /** Undefined: it was compared. */
  readonly failure: WindowFailure | undefined
}

/** Why a window could not be compared. */
export interface WindowFailure {
  readonly window: Window
  readonly side: 'V2' | 'V3'
  readonly cause: AdapterError
}

/** Reads a window on both sides; it is compared with `compareWindow`. */
export function beginWindow(
  options: CompareWindowOptions,
  window: Window,
  signal: AbortSignal,
): Promise<WindowRead> {
  const learners = options.learners?.[window.list]
  const queries =
    window.kind === 'marks' ? writeMarkQuery(window, learners) : writeRegistrationQueries(learners)
  return readWindow(options.sides[window.kind], queries, options, signal)
}

/**
 * Compares a window that was read, each of its parts by itself where it had to be divided. Records that differ are asked again, but for
 * registrations, which have no key by which they can be. Rejects with the reason of the signal.
 */
export async function compareWindow(
  options: CompareWindowOptions,
  window: Window,
  { v2, v3, again }: WindowRead,
  signal: AbortSignal,
): Promise<readonly WindowResult[]> {
  if (v2.kind === 'tooMany' || v3.kind === 'tooMany') {
    const halves = splitWindow(window)
    if (halves === undefined)
      return [failed(window, v2.kind === 'tooMany' ? 'V2' : 'V3', tooManyRows(options.maxRows), [])]
    const results: WindowResult[] = []
    for (const half of halves)
      results.push(...(await compareWindow(options, half, await beginWindow(options, half, signal), signal)))
    return results
  }
  if (v2.kind === 'failed') return [failed(window, 'V2', v2.cause, unknownRows('v3', v3))]
  if (v3.kind === 'failed') return [failed(window, 'V3', v3.cause, unknownRows('v2', v2))]
  const pair = { kind: window.kind, v2: v2.rows, rules: options.rules }
  const compared = comparePair({ ...pair, v3: v3.rows })
  const noise: Noise =
    again?.kind === 'rows' ? noiseOf(comparePair({ ...pair, v3: again.rows, order: 'free' })) : new Map()
  const last =
    window.kind === 'marks'
      ? await askAgain(options, window, compared, noise, signal)
      : { rows: compared, noise, asked: 0 }
  const rows = last.noise.size === 0 ? last.rows : last.rows.map((row) => leaveOutNoise(row, last.noise))
  return [{ window, rows, noise: last.noise, asked: last.asked, failure: undefined }]
}

function failed(
  window: Window,
  side: WindowFailure['side'],
  cause: AdapterError,
  rows: readonly RecordDiff[],
): WindowResult {
  return { window, rows, noise: new Map(), asked: 0, failure: { window, side, cause } }
}

/** The rows of the side that answered: nothing is said of them. */
function unknownRows(side: 'v2' | 'v3', read: RowsRead): readonly RecordDiff[] {
  const none = { comparison: plainly('unknown'), v2: undefined, v3: undefined }
  return read.kind === 'rows' ? read.rows.map((row) => ({ ...none, [side]: row })) : []
}

function tooManyRows(maxRows: number): AdapterError {
  return new AdapterError(
    'ADP_UPSTREAM_PROTOCOL',
    `The answer has more than ${maxRows} rows, or does not end, and cannot be divided by time. Compare fewer learners (--learners).`,
  )
}
