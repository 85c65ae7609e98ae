import { type Clock, waitFor } from '../../clock.ts'
import { AdapterError } from '../../errors.ts'
import { comparePair, type RecordDiff, withoutNoise } from '../diff/compare-pair.ts'
import { type OwnRules, verdictOnly } from '../diff/findings.ts'
import { idOf, isMembers, memberOf } from '../diff/values.ts'
import { type Comparison, isEqual } from '../verdict.ts'
import { writeMarkQuery, writeRegistrationQueries } from './queries.ts'
import { type ComparedSide, readRows, type RowsRead } from './sides.ts'
import { splitWindow, type Window } from './windows.ts'

export interface CompareWindowOptions {
  readonly sides: Readonly<Record<Window['kind'], Readonly<Record<'v2' | 'v3', ComparedSide>>>>
  readonly noise: boolean
  readonly rules: OwnRules | undefined
  /** The maximum number of rows of a window per side. A larger window is divided into halves. */
  readonly maxRows: number
  readonly clock: Clock
  /** The milliseconds that a change may take to reach the other side. After this pause, records that differ are read again. */
  readonly pauseMs: number
  /** The learners to compare, as lists that each fit into one query, or `undefined` for all learners. */
  readonly learners: readonly (readonly string[])[] | undefined
}

/** The result of a window. If one side could not be read, the rows of the other side are `unknown`. */
export interface WindowResult {
  readonly window: Window
  readonly rows: readonly RecordDiff[]
  readonly noise: Noise
  readonly readAgain: number
  /** The failure if the window could not be compared, and `undefined` otherwise. */
  readonly failure: WindowFailure | undefined
}

export interface WindowFailure {
  readonly window: Window
  readonly side: 'V2' | 'V3'
  readonly cause: AdapterError
}

/** Reads a window on both sides at the same time, and V2 twice (`again`) if noise is measured. Rejects like `readRows`. */
async function readWindow(
  { sides, noise, maxRows, learners: lists }: CompareWindowOptions,
  window: Window,
  signal: AbortSignal,
) {
  const { v2, v3 } = sides[window.kind]
  const learners = lists?.[window.list]
  const queries =
    window.kind === 'marks' ? writeMarkQuery(window, learners) : writeRegistrationQueries(learners)
  const readV2 = (): Promise<RowsRead> => readRows(v2, queries.v2, maxRows, signal)
  const readTwice = async () => {
    const first = await readV2()
    return { v2: first, again: noise && first.kind === 'rows' ? await readV2() : undefined }
  }
  const [ofV2, ofV3] = await Promise.all([readTwice(), readRows(v3, queries.v3, maxRows, signal)])
  return { ...ofV2, v3: ofV3 }
}

/** Reads and compares a window on both sides, in halves if it is too large. Rejects with the reason of `signal` if it aborts. */
export async function compareWindow(
  options: CompareWindowOptions,
  window: Window,
  signal: AbortSignal,
): Promise<readonly WindowResult[]> {
  const { v2, v3, again } = await readWindow(options, window, signal)
  if (v2.kind === 'tooMany' || v3.kind === 'tooMany') {
    const halves = splitWindow(window)
    if (halves === undefined)
      return [toFailedResult(window, v2.kind === 'tooMany' ? 'V2' : 'V3', tooManyRows(options.maxRows), [])]
    const [earlier, later] = halves
    return [
      ...(await compareWindow(options, earlier, signal)),
      ...(await compareWindow(options, later, signal)),
    ]
  }
  if (v2.kind === 'failed') return [toFailedResult(window, 'V2', v2.cause, unknownRows('v3', v3))]
  if (v3.kind === 'failed') return [toFailedResult(window, 'V3', v3.cause, unknownRows('v2', v2))]
  const pair = { kind: window.kind, v2: v2.rows, rules: options.rules }
  const first = {
    rows: comparePair({ ...pair, v3: v3.rows }),
    noise: noiseOf(
      window,
      again?.kind === 'rows' ? comparePair({ ...pair, v3: again.rows, order: 'free' }) : [],
    ),
  }
  const { rows, noise, readAgain: asked } = await readDifferencesAgain(options, window, first, signal)
  const settled = rows.map((row) => removeNoise(row, noise.get(recordKeyOf(window, row))))
  return [{ window, rows: settled, noise, readAgain: asked, failure: undefined }]
}

function toFailedResult(
  window: Window,
  side: WindowFailure['side'],
  cause: AdapterError,
  rows: readonly RecordDiff[],
): WindowResult {
  return { window, rows, noise: new Map(), readAgain: 0, failure: { window, side, cause } }
}

function unknownRows(side: 'v2' | 'v3', read: RowsRead): readonly RecordDiff[] {
  const none = { comparison: verdictOnly('unknown'), v2: undefined, v3: undefined }
  return read.kind === 'rows' ? read.rows.map((row) => ({ ...none, [side]: row })) : []
}

function tooManyRows(maxRows: number): AdapterError {
  return new AdapterError(
    'ADP_UPSTREAM_PROTOCOL',
    `One hour of sessions has more than ${maxRows} rows, or the answer never ends. The window was not compared. Compare fewer learners (--learners).`,
  )
}

/** The maximum number of attempts to read a window again. An attempt fails if one side cannot be read. */
const MAX_READS = 3

/**
 * Reads a window again if records differ, so that changes during the first read do not count as differences. Only the records that differed
 * are taken from the second read. These records are `unknown` if all attempts fail.
 */
async function readDifferencesAgain(
  options: CompareWindowOptions,
  window: Window,
  { rows, noise }: Pick<WindowResult, 'rows' | 'noise'>,
  signal: AbortSignal,
): Promise<Pick<WindowResult, 'rows' | 'noise' | 'readAgain'>> {
  const differing = rows.filter(({ comparison }) => !isEqual(comparison) && comparison.verdict !== 'unknown')
  const names = new Set(differing.map((row) => recordKeyOf(window, row)).filter((name) => name !== ''))
  if (names.size === 0) return { rows, noise, readAgain: 0 }
  const isAsked = (row: RecordDiff): boolean => names.has(recordKeyOf(window, row))
  const others = rows.filter((row) => !isAsked(row))
  for (let reads = 0; reads < MAX_READS; reads += 1) {
    if (options.pauseMs > 0) await waitFor(options.pauseMs, options.clock, signal)
    signal.throwIfAborted()
    const { v2, v3, again } = await readWindow(options, window, signal)
    if (v2.kind !== 'rows' || v3.kind !== 'rows') continue
    const compare = (ofOther: readonly object[]): readonly RecordDiff[] =>
      comparePair({
        kind: window.kind,
        v2: v2.rows,
        v3: ofOther,
        order: 'free',
        rules: options.rules,
      }).filter(isAsked)
    const last = noiseOf(window, again?.kind === 'rows' ? compare(again.rows) : [])
    return {
      rows: [...others, ...compare(v3.rows)],
      noise: new Map([...[...noise].filter(([name]) => !names.has(name)), ...last]),
      readAgain: names.size,
    }
  }
  const unknown = rows.filter(isAsked).map((row) => ({ ...row, comparison: verdictOnly('unknown') }))
  return { rows: [...others, ...unknown], noise, readAgain: names.size }
}

/**
 * Returns a key that identifies a record in all reads of a window: learner and event, or the id of a registration. Returns an empty text if
 * neither side has the ids.
 */
function recordKeyOf({ kind }: Window, { v2, v3 }: Pick<RecordDiff, 'v2' | 'v3'>): string {
  const members = kind === 'marks' ? ['Learner', 'AttendableEvent'] : ['ExternalID']
  const idsOf = (row: unknown): readonly (string | undefined)[] =>
    members.map((name) => (isMembers(row) ? idOf(memberOf(row, name)) : undefined))
  const ids = [v2, v3].map(idsOf).find((own) => !own.includes(undefined))
  return ids?.join('\n') ?? ''
}

/** The records in which two reads of V2 differ, with the comparison of the two reads. */
type Noise = ReadonlyMap<string, Comparison>

function noiseOf(window: Window, rows: readonly RecordDiff[]): Noise {
  const noisy = rows.filter(({ comparison }) => !isEqual(comparison) && comparison.verdict !== 'unknown')
  const named = noisy.map((row) => [recordKeyOf(window, row), row.comparison] as const)
  return new Map(named.filter(([name]) => name !== ''))
}

/**
 * Removes the fields in which two reads of V2 differ, so that the other fields decide. If V2 or V3 lacks the record, and V2 returned it in
 * only one of the two reads, the verdict is `unknown`.
 */
function removeNoise(row: RecordDiff, noise: Comparison | undefined): RecordDiff {
  const { comparison } = row
  if (noise === undefined || isEqual(comparison)) return row
  if (comparison.verdict === 'differs') return { ...row, comparison: withoutNoise(comparison, noise) }
  return noise.verdict === 'differs' ? row : { ...row, comparison: { ...comparison, verdict: 'unknown' } }
}
