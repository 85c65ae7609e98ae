import { AdapterError } from '../../errors.ts'
import { askAgain, type AskAgainOptions } from './ask-again.ts'
import type { RecordDiff } from '../diff/index.ts'
import { type Noise, noiseOf, leaveOutNoise } from './noise.ts'
import { readWindow, type WindowQueries, type WindowRead } from './read-window.ts'
import type { RowsRead } from './read-rows.ts'
import { splitWindow, type Window } from './windows.ts'

/** What one reading of a window gave. Of a window that could not be read on both sides, the rows of one are `unknown`. */
export interface WindowResult {
  readonly rows: readonly RecordDiff[]
  readonly noise: Noise
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

export interface CompareWindowOptions extends AskAgainOptions {
  readonly queriesOf: (window: Window) => WindowQueries
  /** False: records that differ have no key by which they can be read again. */
  readonly asksAgain: boolean
}

/** Begins to read a window; it is compared with `compareWindow`. */
export function beginWindow(
  options: CompareWindowOptions,
  window: Window,
  signal: AbortSignal,
): Promise<WindowRead> {
  return readWindow(options, options.queriesOf(window), signal)
}

/**
 * Compares a window that was read, each of its parts by itself where it had to be divided, and calls `onResult` for each.
 * Rejects with the reason of the signal.
 */
export async function compareWindow(
  options: CompareWindowOptions,
  window: Window,
  read: WindowRead,
  signal: AbortSignal,
  onResult: (result: WindowResult) => void,
): Promise<void> {
  const { v2, v3, again } = read
  if (v2.kind === 'tooMany' || v3.kind === 'tooMany') {
    const halves = splitWindow(window)
    if (halves === undefined) {
      onResult(failed(window, v2.kind === 'tooMany' ? 'V2' : 'V3', tooManyRows(options.maxRows), []))
      return
    }
    for (const half of halves)
      await compareWindow(options, half, await beginWindow(options, half, signal), signal, onResult)
    return
  }
  if (v2.kind === 'failed') onResult(failed(window, 'V2', v2.cause, unknownRows('v3', v3)))
  else if (v3.kind === 'failed') onResult(failed(window, 'V3', v3.cause, unknownRows('v2', v2)))
  else {
    const noise = again?.kind === 'rows' ? noiseOf(options.compare(v2.rows, again.rows, 'free')) : noNoise
    const first = options.compare(v2.rows, v3.rows, 'unasked')
    const last = options.asksAgain
      ? await askAgain(options, window, first, noise, signal)
      : { rows: first, noise, asked: 0 }
    const rows = last.noise.size === 0 ? last.rows : last.rows.map((row) => leaveOutNoise(row, last.noise))
    onResult({ rows, noise: last.noise, asked: last.asked, failure: undefined })
  }
}

const noNoise: Noise = new Map()

function failed(
  window: Window,
  side: WindowFailure['side'],
  cause: AdapterError,
  rows: readonly RecordDiff[],
): WindowResult {
  return { rows, noise: noNoise, asked: 0, failure: { window, side, cause } }
}

/** The rows of the side that answered: nothing is said of them. */
function unknownRows(side: 'v2' | 'v3', read: RowsRead): readonly RecordDiff[] {
  const comparison = { verdict: 'unknown', differences: [], equivalences: [] } as const
  const none = { comparison, v2: undefined, v3: undefined }
  return read.kind === 'rows' ? read.rows.map((row) => ({ ...none, [side]: row })) : []
}

function tooManyRows(maxRows: number): AdapterError {
  return new AdapterError(
    'ADP_UPSTREAM_PROTOCOL',
    `The answer has more than ${maxRows} rows, or does not end, and cannot be divided by time. Compare fewer learners (--learners).`,
  )
}
