import { type Clock, waitFor } from '../../clock.ts'
import { AdapterError } from '../../errors.ts'
import { isGuid } from '../../odata/index.ts'
import { comparePair, type OwnRules, plainly, type RecordDiff, withoutNoise } from '../diff/index.ts'
import { isMembers } from '../diff/values.ts'
import type { Comparison } from '../verdict.ts'
import {
  listKeys,
  type MarkKey,
  type WindowQueries,
  writeMarkQuery,
  writeRegistrationQueries,
} from './queries.ts'
import { type ComparedSide, readRows, type RowsRead } from './sides.ts'
import { splitWindow, type Window } from './windows.ts'

/** How windows are read and compared. */
export interface CompareWindowOptions {
  readonly sides: Readonly<Record<Window['kind'], SidePair>>
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

/** One kind of record on both sides. */
interface SidePair {
  readonly v2: ComparedSide
  readonly v3: ComparedSide
}

/** Reads a query of both sides at the same time, V2 once more as `again` where noise is measured. Rejects as `readRows`. */
async function readPair(
  { sides, noise, maxRows }: CompareWindowOptions,
  kind: Window['kind'],
  queries: WindowQueries,
  signal: AbortSignal,
) {
  const readV2 = (): Promise<RowsRead> => readRows(sides[kind].v2, queries.v2, maxRows, signal)
  const readTwice = async () => {
    const v2 = await readV2()
    return { v2, again: noise && v2.kind === 'rows' ? await readV2() : undefined }
  }
  const [ofV2, v3] = await Promise.all([readTwice(), readRows(sides[kind].v3, queries.v3, maxRows, signal)])
  return { ...ofV2, v3 }
}

/**
 * Reads a window on both sides and compares it, each of its parts by itself where it has to be divided. Records that differ are asked again,
 * but for registrations, which have no key by which they can be. Rejects with the reason of the signal.
 */
export async function compareWindow(
  options: CompareWindowOptions,
  window: Window,
  signal: AbortSignal,
): Promise<readonly WindowResult[]> {
  const { kind } = window
  const learners = options.learners?.[window.list]
  const queries = kind === 'marks' ? writeMarkQuery(window, learners) : writeRegistrationQueries(learners)
  const { v2, v3, again } = await readPair(options, kind, queries, signal)
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
  const pair = { kind, v2: v2.rows, rules: options.rules }
  const rows = comparePair({ ...pair, v3: v3.rows })
  const noise: Noise =
    again?.kind === 'rows' ? noiseOf(comparePair({ ...pair, v3: again.rows, order: 'free' })) : new Map()
  const last =
    kind === 'marks' ? await askAgain(options, window, rows, noise, signal) : { rows, noise, asked: 0 }
  const settled = last.rows.map((row) => leaveOutNoise(row, last.noise))
  return [{ window, rows: settled, noise: last.noise, asked: last.asked, failure: undefined }]
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

/**
 * Records of a window that are asked again at most. A mark that changed between the two reads is one of few; where more differ,
 * those whose way of differing is rarest are asked, and the others are differences as they are.
 */
const MAX_ASKED = 240
/** How often a list of keys is read, with a pause before each time: a read that breaks off says nothing of its records. */
const MAX_READS = 3

/**
 * Reads the records that differ once more, by learner and session, on both sides and after a pause: what changed between the two
 * reads does not count as a difference. A record that cannot be read again is `unknown`. A service that refuses to be asked for several keys at
 * once is asked for each, and what it answers beyond the keys does not count.
 */
async function askAgain(
  options: CompareWindowOptions,
  window: Window,
  rows: readonly RecordDiff[],
  noise: Noise,
  signal: AbortSignal,
): Promise<Pick<WindowResult, 'rows' | 'noise' | 'asked'>> {
  const keys = keysToAsk(rows)
  if (keys.size === 0) return { rows, noise, asked: 0 }
  const pause = async (): Promise<void> => {
    if (options.pauseMs > 0) await waitFor(options.pauseMs, options.clock, signal)
    signal.throwIfAborted()
  }
  await pause()
  const compare = (ofV2: readonly object[], ofV3: readonly object[]): readonly RecordDiff[] =>
    comparePair({ kind: 'marks', v2: ofV2, v3: ofV3, order: 'free', rules: options.rules })
  const before = Map.groupBy(rows, (row) => nameOf(keyOf(row)))
  const kept = [...before].flatMap(([name, own]) => (keys.has(name) ? [] : own))
  const all = new Map(noise)
  const lists = listKeys([...keys.values()]).map((list) => ({ list, reads: 1 }))
  for (const { list, reads } of lists) {
    if (reads > 1) await pause()
    const query = writeMarkQuery(window, undefined, list)
    const { v2, v3, again } = await readPair(options, 'marks', query, signal)
    const names = new Set(list.map(nameOf))
    if (list.length > 1 && (isRefused(v2) || isRefused(v3))) {
      lists.push(...list.map((key) => ({ list: [key], reads })))
      continue
    }
    if (v2.kind !== 'rows' || v3.kind !== 'rows') {
      if (reads < MAX_READS) lists.push({ list, reads: reads + 1 })
      else for (const name of names) kept.push(...(before.get(name) ?? []).map(toUnknown))
      continue
    }
    // A service may answer with more than it was asked for.
    const own = (ofSide: readonly object[]): readonly object[] =>
      ofSide.filter((row) => names.has(nameOf(keyOfRow(row))))
    kept.push(...compare(own(v2.rows), own(v3.rows)))
    for (const name of names) all.delete(name)
    if (again?.kind === 'rows')
      for (const [name, found] of noiseOf(compare(own(v2.rows), own(again.rows)))) all.set(name, found)
  }
  return { rows: kept, noise: all, asked: keys.size }
}

const isRefused = (read: RowsRead): boolean =>
  read.kind === 'failed' && read.cause.code === 'ADP_UPSTREAM_REFUSED'

const toUnknown = (row: RecordDiff): RecordDiff => ({ ...row, comparison: plainly('unknown') })

/** Keys of the records that differ, the rarest ways of differing first. */
function keysToAsk(rows: readonly RecordDiff[]): ReadonlyMap<string, MarkKey> {
  const ways = new Map<string, Map<string, MarkKey>>()
  const moved = namesOfMoved(rows)
  for (const row of rows) {
    const { verdict, differences } = row.comparison
    const key = isEqual(row.comparison) || verdict === 'unknown' ? undefined : keyOf(row)
    if (key === undefined || moved.has(nameOf(key))) continue
    const way = [verdict, ...differences.map(({ path, kind }) => `${path} ${kind}`)].join('\n')
    const keys = ways.get(way) ?? new Map<string, MarkKey>()
    ways.set(way, keys.set(nameOf(key), key))
  }
  const rarestFirst = [...ways.values()].sort((one, other) => one.size - other.size)
  return new Map(rarestFirst.flatMap((keys) => [...keys]).slice(0, MAX_ASKED))
}

/**
 * Keys of records for which the sides name another learner or session: asked by the key of V2, V3 would not have the record.
 */
function namesOfMoved(rows: readonly RecordDiff[]): ReadonlySet<string> {
  const moved = new Set<string>()
  for (const { v2, v3, comparison } of rows) {
    if (comparison.verdict !== 'differs') continue
    const [one, other] = [keyOfRow(v2), keyOfRow(v3)].map(nameOf)
    if (one !== '' && other !== '' && one !== other) moved.add(one ?? '').add(other ?? '')
  }
  return moved
}

/** Learner and session of a mark, as V2 has them, else V3; undefined where they cannot be asked for. */
const keyOf = ({ v2, v3 }: Pick<RecordDiff, 'v2' | 'v3'>): MarkKey | undefined => keyOfRow(v2) ?? keyOfRow(v3)

/** Learner and session of the row of one side. */
function keyOfRow(row: unknown): MarkKey | undefined {
  if (!isMembers(row)) return undefined
  const { Learner: learner, AttendableEvent: event } = row
  if (typeof learner !== 'string' || typeof event !== 'string' || !isGuid(learner) || !isGuid(event))
    return undefined
  return { learner, event }
}

/** The key as a text that is equal for equal keys; empty for none. */
function nameOf(key: MarkKey | undefined): string {
  return key === undefined ? '' : `${key.learner} ${key.event}`.toLowerCase()
}

/** True where both sides show the same. */
const isEqual = ({ verdict }: Comparison): boolean => verdict === 'same' || verdict === 'equivalent'

/** What V2 contradicts itself in, by record: the comparison of one read of V2 with another. */
type Noise = ReadonlyMap<string, Comparison>

/** Takes the noise from two reads of V2 that were set against each other. */
function noiseOf(rows: readonly RecordDiff[]): Noise {
  const noise = new Map<string, Comparison>()
  for (const row of rows) {
    const name = nameOf(keyOf(row))
    if (name !== '' && !isEqual(row.comparison) && row.comparison.verdict !== 'unknown')
      noise.set(name, row.comparison)
  }
  return noise
}

/**
 * The record without the differences that are noise: its other fields decide. A record that V2 has in one of its reads only, and
 * that one side lacks, is `unknown`: V2 gives no answer that V3 could be measured by.
 */
function leaveOutNoise(row: RecordDiff, noise: Noise): RecordDiff {
  const { comparison } = row
  const own = isEqual(comparison) ? undefined : noise.get(nameOf(keyOf(row)))
  if (own === undefined) return row
  if (comparison.verdict === 'differs') return { ...row, comparison: withoutNoise(comparison, own) }
  return own.verdict === 'differs' ? row : { ...row, comparison: { ...comparison, verdict: 'unknown' } }
}
