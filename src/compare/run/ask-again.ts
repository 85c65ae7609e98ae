import type { Clock } from '../../clock.ts'
import type { RecordDiff } from '../diff/index.ts'
import { type CompareRows, keyOf, keyOfRow, nameOf } from './compared-row.ts'
import { type Noise, noiseOf } from './noise.ts'
import type { RowsRead } from './read-rows.ts'
import { readWindow, type ReadWindowOptions } from './read-window.ts'
import type { Window } from './windows.ts'
import { listKeys, type MarkKey, writeMarkQuery } from './write-filter.ts'

/**
 * Records of a window that are asked again at most. A mark that changed between the two reads is one of few; where more differ,
 * those whose way of differing is rarest are asked, and the others are differences as they are.
 */
const MAX_ASKED = 240
/** How often a list of keys is read, with a pause before each time: a read that breaks off says nothing of its records. */
const MAX_READS = 3

export interface AskAgainOptions extends ReadWindowOptions {
  readonly compare: CompareRows
  readonly clock: Pick<Clock, 'after'>
  /** Time that a change may take to reach the other side. */
  readonly pauseMs: number
}

/** The rows of a window after those that differed were read again. */
export interface AskedAgain {
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
  window: Pick<Window, 'fromMs' | 'toMs'>,
  rows: readonly RecordDiff[],
  noise: Noise,
  signal: AbortSignal,
): Promise<AskedAgain> {
  const keys = keysToAsk(rows)
  if (keys.size === 0) return { rows, noise, asked: 0 }
  await pause(options, signal)
  const kept: RecordDiff[] = []
  const before = new Map<string, RecordDiff[]>()
  for (const row of rows) {
    const key = keyOf(row)
    const name = key === undefined ? '' : nameOf(key)
    if (!keys.has(name)) kept.push(row)
    else before.set(name, [...(before.get(name) ?? []), row])
  }
  const all = new Map(noise)
  const lists = listKeys([...keys.values()]).map((list) => ({ list, reads: 1 }))
  for (const { list, reads } of lists) {
    if (reads > 1) await pause(options, signal)
    const query = writeMarkQuery(window, undefined, list)
    const read = await readWindow(options, { v2: query, v3: query }, signal)
    const names = list.map(nameOf)
    const { v2, v3, again } = read
    if (list.length > 1 && (isRefused(v2) || isRefused(v3))) {
      lists.push(...list.map((key) => ({ list: [key], reads })))
      continue
    }
    if (v2.kind !== 'rows' || v3.kind !== 'rows') {
      if (reads < MAX_READS) lists.push({ list, reads: reads + 1 })
      else for (const name of names) kept.push(...(before.get(name) ?? []).map(toUnknown))
      continue
    }
    const asked = new Set(names)
    const own = (ofSide: readonly object[]): readonly object[] => ofSide.filter((row) => isOneOf(asked, row))
    const [ownV2, ownV3] = [own(v2.rows), own(v3.rows)]
    kept.push(...options.compare(ownV2, ownV3, 'free'))
    for (const name of names) all.delete(name)
    if (again?.kind === 'rows')
      for (const [name, found] of noiseOf(options.compare(ownV2, own(again.rows), 'free')))
        all.set(name, found)
  }
  return { rows: kept, noise: all, asked: keys.size }
}

function isRefused(read: RowsRead): boolean {
  return read.kind === 'failed' && read.cause.code === 'ADP_UPSTREAM_REFUSED'
}

/** True for a row of one of the keys: a service may answer with more than it was asked for. */
function isOneOf(names: ReadonlySet<string>, row: object): boolean {
  const key = keyOfRow(row)
  return key !== undefined && names.has(nameOf(key))
}

/** Keys of the records that differ, the rarest ways of differing first. */
function keysToAsk(rows: readonly RecordDiff[]): ReadonlyMap<string, MarkKey> {
  const ways = new Map<string, Map<string, MarkKey>>()
  const moved = namesOfMoved(rows)
  for (const row of rows) {
    const { verdict, differences } = row.comparison
    if (verdict === 'same' || verdict === 'equivalent' || verdict === 'unknown') continue
    const key = keyOf(row)
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
    const [one, other] = [keyOfRow(v2), keyOfRow(v3)]
    if (one === undefined || other === undefined || nameOf(one) === nameOf(other)) continue
    moved.add(nameOf(one)).add(nameOf(other))
  }
  return moved
}

function toUnknown(row: RecordDiff): RecordDiff {
  return { ...row, comparison: { verdict: 'unknown', differences: [], equivalences: [] } }
}

async function pause({ clock, pauseMs }: AskAgainOptions, signal: AbortSignal): Promise<void> {
  if (pauseMs > 0)
    await new Promise<void>((resolve) => {
      const end = (): void => {
        cancel()
        signal.removeEventListener('abort', end)
        resolve()
      }
      const cancel = clock.after(pauseMs, end)
      signal.addEventListener('abort', end)
    })
  signal.throwIfAborted()
}
