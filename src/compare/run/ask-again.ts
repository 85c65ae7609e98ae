import type { Clock } from '../../clock.ts'
import type { RecordDiff } from '../diff/index.ts'
import { type CompareRows, keyOf, nameOf } from './compared-row.ts'
import { type Noise, noiseOf } from './noise.ts'
import { readWindow, type ReadWindowOptions } from './read-window.ts'
import type { Window } from './windows.ts'
import { listKeys, type MarkKey, writeMarkQuery } from './write-filter.ts'

/**
 * Records of a window that are asked again at most. A mark that changed between the two reads is one of few; where more differ,
 * those whose way of differing is rarest are asked, and the others are differences as they are.
 */
const MAX_ASKED = 240

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
 * reads is no difference. Where the second read fails a record is `unknown`.
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
  for (const list of listKeys([...keys.values()])) {
    const query = writeMarkQuery(window, undefined, list)
    const read = await readWindow(options, { v2: query, v3: query }, signal)
    const names = list.map(nameOf)
    const { v2, v3, again } = read
    if (v2.kind !== 'rows' || v3.kind !== 'rows') {
      for (const name of names) kept.push(...(before.get(name) ?? []).map(toUnknown))
      continue
    }
    kept.push(...options.compare(v2.rows, v3.rows, 'free'))
    for (const name of names) all.delete(name)
    if (again?.kind === 'rows')
      for (const [name, own] of noiseOf(options.compare(v2.rows, again.rows, 'free'))) all.set(name, own)
  }
  return { rows: kept, noise: all, asked: keys.size }
}

/** Keys of the records that differ, the rarest ways of differing first. */
function keysToAsk(rows: readonly RecordDiff[]): ReadonlyMap<string, MarkKey> {
  const ways = new Map<string, Map<string, MarkKey>>()
  for (const row of rows) {
    const { verdict, differences } = row.comparison
    if (verdict === 'same' || verdict === 'equivalent' || verdict === 'unknown') continue
    const key = keyOf(row)
    if (key === undefined) continue
    const way = [verdict, ...differences.map(({ path, kind }) => `${path} ${kind}`)].join('\n')
    const keys = ways.get(way) ?? new Map<string, MarkKey>()
    ways.set(way, keys.set(nameOf(key), key))
  }
  const rarestFirst = [...ways.values()].sort((one, other) => one.size - other.size)
  return new Map(rarestFirst.flatMap((keys) => [...keys]).slice(0, MAX_ASKED))
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
