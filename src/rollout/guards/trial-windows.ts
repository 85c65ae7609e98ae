import { createSlowThresholds, type SlowThresholds } from './slow-threshold.ts'
import type { GuardKindName } from './guard-kinds.ts'
import type { Side } from '../stage.ts'

/** What became of a write. */
export interface TrialResult {
  /** Which outcomes were bad; a kind that is missing was not judged. */
  readonly bad: Readonly<Partial<Record<GuardKindName, boolean>>>
  /** Without the time in a queue; undefined where it is not known, then `slow` is not judged. */
  readonly latencyMs?: number | undefined
}

/** A write that is received. */
export interface TrialStart {
  readonly unit: string
  readonly side: Side
  readonly receivedMs: number
  /** About how many records it has, by the same rule on both sides: writes of like size are compared with each other. */
  readonly records: number
}

/** A write under way that counts as a trial. Its first end counts. */
export interface Trial {
  end(result: TrialResult): void
  /** It never got as far as an upstream. */
  drop(): void
}

/** A trial that ended. */
export interface CountedTrial {
  readonly unit: string
  readonly side: Side
  /** Class of its size. */
  readonly stratum: number
  readonly bad: Readonly<Partial<Record<GuardKindName, boolean>>>
}

/** The trials that were received in one window, all of which ended. */
export interface TrialWindow {
  readonly endMs: number
  readonly trials: readonly CountedTrial[]
}

/** Takes the writes of one partner into windows by the time of their receipt. */
export interface TrialWindows {
  /** Undefined: it does not count, since its unit has a trial in this window, or since the window is full. */
  begin(write: TrialStart): Trial | undefined
  /** The windows that are over, in order; one waits for its trials and all later ones wait for it. */
  close(nowMs: number): readonly TrialWindow[]
}

export interface TrialWindowOptions {
  readonly windowMs: number
  /** A trial that has not ended then counts as unknown: it is not waited for any longer. */
  readonly maxTrialMs: number
  /** Units that are counted in one window. */
  readonly maxUnits: number
}

interface Entry {
  readonly unit: string
  readonly side: Side
  readonly stratum: number
  result: TrialResult | 'open' | 'dropped'
}

interface OpenWindow {
  readonly startMs: number
  readonly entries: Map<string, Entry>
  /** As they were when the window began: a threshold that its own trials move would not be fair. */
  readonly slowAboveMs: ReturnType<SlowThresholds['current']>
  open: number
}

/**
 * Creates the windows. The first write of each unit in a window counts and no other: writes that one school sends together share their
 * fate (a broken connection, a second without service), and counting each of them would take one event for many. Which one counts does not depend
 * on its outcome. Windows close in order, however long their trials take: else those with slow failures on one side would be missing
 * for a while from the evidence, and those on the other side would not.
 */
export function createTrialWindows({ windowMs, maxTrialMs, maxUnits }: TrialWindowOptions): TrialWindows {
  const windows: OpenWindow[] = []
  const thresholds = createSlowThresholds()
  const windowAt = (receivedMs: number): OpenWindow => {
    const startMs = Math.floor(receivedMs / windowMs) * windowMs
    const last = windows.at(-1)
    // A clock that went back: the write belongs to the latest window.
    if (last !== undefined && last.startMs >= startMs) return last
    const window = { startMs, entries: new Map<string, Entry>(), slowAboveMs: thresholds.current(), open: 0 }
    windows.push(window)
    return window
  }
  const isOver = ({ startMs, open }: OpenWindow, nowMs: number): boolean =>
    nowMs >= startMs + windowMs && (open === 0 || nowMs >= startMs + windowMs + maxTrialMs)
  return {
    begin: ({ unit, side, receivedMs, records }) => {
      const window = windowAt(receivedMs)
      if (window.entries.has(unit) || window.entries.size >= maxUnits) return undefined
      const entry: Entry = { unit, side, stratum: stratumOf(records), result: 'open' }
      window.entries.set(unit, entry)
      window.open += 1
      const finish = (result: TrialResult | 'dropped'): void => {
        if (entry.result !== 'open') return
        entry.result = result
        window.open -= 1
      }
      return { end: finish, drop: () => finish('dropped') }
    },
    close: (nowMs) => {
      const closed: TrialWindow[] = []
      for (let window = windows[0]; window !== undefined && isOver(window, nowMs); window = windows[0]) {
        windows.shift()
        closed.push(toTrialWindow(window, windowMs, thresholds))
        thresholds.windowOver()
      }
      return closed
    },
  }
}

const unended: TrialResult = { bad: { unknown: true } }

function toTrialWindow(
  { startMs, entries, slowAboveMs }: OpenWindow,
  windowMs: number,
  thresholds: SlowThresholds,
): TrialWindow {
  const trials: CountedTrial[] = []
  for (const { unit, side, stratum, result } of entries.values()) {
    if (result === 'dropped') continue
    const { bad, latencyMs } = result === 'open' ? unended : result
    const aboveMs = slowAboveMs(stratum)
    const slow = aboveMs === undefined || latencyMs === undefined ? {} : { slow: latencyMs > aboveMs }
    if (side === 'v2' && latencyMs !== undefined) thresholds.add(stratum, latencyMs)
    trials.push({ unit, side, stratum, bad: { ...bad, ...slow } })
  }
  return { endMs: startMs + windowMs, trials }
}

/** Sizes up to which a class goes. A batch is the likelier bad the more records it has, and schools differ in that. */
const sizes = [1, 7, 31, 127]

function stratumOf(records: number): number {
  const found = sizes.findIndex((size) => records <= size)
  return found === -1 ? sizes.length : found
}
