import { type Clock, waitFor } from '../../clock.ts'
import { comparePair, type OwnRules, plainly, type RecordDiff } from '../diff/index.ts'
import { isEqual, keyOf, keyOfRow, nameOf, type Noise, noiseOf } from './compared-rows.ts'
import { listKeys, type MarkKey, writeMarkQuery } from './queries.ts'
import { readWindow, type RowsRead, type SidePair } from './read-window.ts'
import type { Window } from './windows.ts'

/**
 * Records of a window that are asked again at most. A mark that changed between the two reads is one of few; where more differ,
 * those whose way of differing is rarest are asked, and the others are differences as they are.
 */
const MAX_ASKED = 240
/** How often a list of keys is read, with a pause before each time: a read that breaks off says nothing of its records. */
const MAX_READS = 3

export interface AskAgainOptions {
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
}

/** The rows of a window after those that differed were read again. */
interface AskedAgain {
  readonly rows: readonly RecordDiff[]
  readonly noise: Noise
  /** Records that were asked again. */
  readonly asked: number
}

/**
 * Reads the records that differ once more, by learner and session, on both sides and after a pause: what changed between the two
 * reads does not count as a difference. A record that cannot be read again is `unknown`. A service that refuses to be asked for several keys at
 * once is asked for each, and what it answers beyond the keys does not count.
 */
export async function askAgain(
  options: AskAgainOptions,
  window: Window,
  rows: readonly RecordDiff[],
  noise: Noise,
  signal: AbortSignal,
): Promise<AskedAgain> {
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
    const { v2, v3, again } = await readWindow(options.sides.marks, query, options, signal)
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
