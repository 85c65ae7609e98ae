import { type Clock, waitFor } from '../../clock.ts'
import { AdapterError } from '../../errors.ts'
import { comparePair, type RecordDiff, withoutNoise } from '../diff/compare-pair.ts'
import { type OwnRules, plainly } from '../diff/findings.ts'
import { idOf, isMembers, memberOf } from '../diff/values.ts'
import { type Comparison, isEqual } from '../verdict.ts'
import { writeMarkQuery, writeRegistrationQueries } from './queries.ts'
import { type ComparedSide, readRows, type RowsRead } from './sides.ts'
import { splitWindow, type Window } from './windows.ts'

/** How windows are read and compared. */
export interface CompareWindowOptions {
  readonly sides: Readonly<Record<Window['kind'], Readonly<Record<'v2' | 'v3', ComparedSide>>>>
  /** True: V2 is read twice. */
  readonly noise: boolean
  /** The partner's own; undefined: none. */
  readonly rules: OwnRules | undefined
  /** A window with more rows is divided. */
  readonly maxRows: number
  readonly clock: Clock
  /** Time that a change may take to reach the other side, before what differs is asked again. */
  readonly pauseMs: number
  /** Learners whose records are compared, as lists that fit into a query each; undefined: all. */
  readonly learners: readonly (readonly string[])[] | undefined
}

/** What a window gave. Of one that could not be read on both sides, the rows of the other one are `unknown`. */
export interface WindowResult {
  readonly window: Window
  readonly rows: readonly RecordDiff[]
  readonly noise: Noise
  /** Records that were asked again. */
  readonly asked: number
  /** Why it could not be compared; undefined: it was. */
  readonly failure: WindowFailure | undefined
}

/** The side that could not be read. */
export interface WindowFailure {
  readonly window: Window
  readonly side: 'V2' | 'V3'
  readonly cause: AdapterError
}

/** Reads a window of both sides at the same time, V2 once more as `again` where noise is measured. Rejects as `readRows`. */
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

/**
 * Reads a window on both sides and compares it, each of its parts by itself where it has to be divided. A window in which records differ is
 * read again. Rejects with the reason of the signal.
 */
export async function compareWindow(
  options: CompareWindowOptions,
  window: Window,
  signal: AbortSignal,
): Promise<readonly WindowResult[]> {
  const { v2, v3, again } = await readWindow(options, window, signal)
  if (v2.kind === 'tooMany' || v3.kind === 'tooMany') {
    const halves = splitWindow(window)
    if (halves === undefined)
      return [failed(window, v2.kind === 'tooMany' ? 'V2' : 'V3', tooManyRows(options.maxRows), [])]
    const [earlier, later] = halves
    return [
      ...(await compareWindow(options, earlier, signal)),
      ...(await compareWindow(options, later, signal)),
    ]
  }
  if (v2.kind === 'failed') return [failed(window, 'V2', v2.cause, unknownRows('v3', v3))]
  if (v3.kind === 'failed') return [failed(window, 'V3', v3.cause, unknownRows('v2', v2))]
  const pair = { kind: window.kind, v2: v2.rows, rules: options.rules }
  const first = {
    rows: comparePair({ ...pair, v3: v3.rows }),
    noise: noiseOf(
      window,
      again?.kind === 'rows' ? comparePair({ ...pair, v3: again.rows, order: 'free' }) : [],
    ),
  }
  const { rows, noise, asked } = await askAgain(options, window, first, signal)
  const settled = rows.map((row) => leaveOutNoise(row, noise.get(nameOf(window, row))))
  return [{ window, rows: settled, noise, asked, failure: undefined }]
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

/** How often a window is read again at most, after a pause each: a read that breaks off says nothing of its records. */
const MAX_READS = 3

/**
 * Reads a window once more where records differ: what changed between the two reads does not count as a difference. Only the records that
 * differed are taken from the second read; they are `unknown` where it is not possible.
 */
async function askAgain(
  options: CompareWindowOptions,
  window: Window,
  { rows, noise }: Pick<WindowResult, 'rows' | 'noise'>,
  signal: AbortSignal,
): Promise<Pick<WindowResult, 'rows' | 'noise' | 'asked'>> {
  const differing = rows.filter(({ comparison }) => !isEqual(comparison) && comparison.verdict !== 'unknown')
  const names = new Set(differing.map((row) => nameOf(window, row)).filter((name) => name !== ''))
  if (names.size === 0) return { rows, noise, asked: 0 }
  const isAsked = (row: RecordDiff): boolean => names.has(nameOf(window, row))
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
      asked: names.size,
    }
  }
  const unknown = rows.filter(isAsked).map((row) => ({ ...row, comparison: plainly('unknown') }))
  return { rows: [...others, ...unknown], noise, asked: names.size }
}

/** What a record is known by in both reads of a window: the learner and session of a mark, the id of a registration; empty: nothing. */
function nameOf({ kind }: Window, { v2, v3 }: Pick<RecordDiff, 'v2' | 'v3'>): string {
  const members = kind === 'marks' ? ['Learner', 'AttendableEvent'] : ['ExternalID']
  const idsOf = (row: unknown): readonly (string | undefined)[] =>
    members.map((name) => (isMembers(row) ? idOf(memberOf(row, name)) : undefined))
  const ids = [v2, v3].map(idsOf).find((own) => !own.includes(undefined))
  return ids?.join('\n') ?? ''
}

/** What V2 contradicts itself in, by record: the comparison of one read of V2 with another. */
type Noise = ReadonlyMap<string, Comparison>

/** Takes the noise from two reads of V2 that were set against each other. */
function noiseOf(window: Window, rows: readonly RecordDiff[]): Noise {
  const noisy = rows.filter(({ comparison }) => !isEqual(comparison) && comparison.verdict !== 'unknown')
  const named = noisy.map((row) => [nameOf(window, row), row.comparison] as const)
  return new Map(named.filter(([name]) => name !== ''))
}

/**
 * The record without the differences that are noise: its other fields decide. A record that V2 has in one of its reads only, and
 * that one side lacks, is `unknown`: V2 gives no answer that V3 could be measured by.
 */
function leaveOutNoise(row: RecordDiff, noise: Comparison | undefined): RecordDiff {
  const { comparison } = row
  if (noise === undefined || isEqual(comparison)) return row
  if (comparison.verdict === 'differs') return { ...row, comparison: withoutNoise(comparison, noise) }
  return noise.verdict === 'differs' ? row : { ...row, comparison: { ...comparison, verdict: 'unknown' } }
}
