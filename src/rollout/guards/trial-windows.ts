import type { Side } from '../stage.ts'

/** What may be bad about a write, the worst first; it counts as the first that it is. */
export const badOutcomes = ['unknown', 'serverError', 'refused', 'slow'] as const
export type BadOutcome = (typeof badOutcomes)[number]

/** What became of a write. */
export interface TrialResult {
  /** `unknown`: of a record; `serverError`: V3 or V2 did not take the request or a record; `refused`: a record. */
  readonly outcome: 'good' | Exclude<BadOutcome, 'slow'>
  /** Without the time in a queue; undefined where it is not known, then it is not slow. */
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
  /** It never got as far as an upstream: the next one of its unit counts. */
  drop(): void
}

/** A trial that ended. */
export interface CountedTrial {
  readonly side: Side
  /** Class of its size. */
  readonly stratum: number
  readonly outcome: 'good' | BadOutcome
}

export type TrialWindows = ReturnType<typeof createTrialWindows>

const WINDOW_MS = 10_000
/** After this time an open trial counts as unknown. No request is served for so long. */
const MAX_TRIAL_MS = 180_000
/** Maximum number of units that are counted in one window. */
const MAX_UNITS = 5_000

interface Entry extends Omit<CountedTrial, 'outcome'> {
  outcome: CountedTrial['outcome'] | 'open'
  latencyMs: number | undefined
}

interface OpenWindow {
  readonly startMs: number
  readonly entries: Map<string, Entry>
  /** The latest on V2 by class of size, as they were when the window began: a threshold that its own trials move would not be fair. */
  readonly latencies: ReadonlyMap<number, readonly number[]>
  open: number
}

/**
 * Creates what takes the writes of one partner into windows by the time of their receipt. The first write of each unit in a window that reaches an upstream counts and no other: writes that one school sends
 * together share their fate (a broken connection, a second without service), and counting each of them would take one event for many. Windows
 * close in order, however long their trials take: else those with slow failures on one side would be missing for a while from the evidence, and
 * those on the other side would not.
 */
export function createTrialWindows() {
  const windows: OpenWindow[] = []
  const latencies = new Map<number, readonly number[]>()
  const windowAt = (receivedMs: number): OpenWindow => {
    const startMs = Math.floor(receivedMs / WINDOW_MS) * WINDOW_MS
    const last = windows.at(-1)
    // A clock that went back: the write belongs to the latest window.
    if (last !== undefined && last.startMs >= startMs) return last
    const window = { startMs, entries: new Map<string, Entry>(), latencies: new Map(latencies), open: 0 }
    windows.push(window)
    return window
  }
  const keep = (stratum: number, latencyMs: number | undefined): void => {
    if (latencyMs !== undefined)
      latencies.set(stratum, [...(latencies.get(stratum) ?? []), latencyMs].slice(-MAX_SAMPLES))
  }
  const isOver = ({ startMs, open }: OpenWindow, nowMs: number): boolean =>
    nowMs >= startMs + WINDOW_MS && (open === 0 || nowMs >= startMs + WINDOW_MS + MAX_TRIAL_MS)
  return {
    /** Undefined: it does not count, since its unit has a trial in this window, or since the window is full. */
    begin: ({ unit, side, receivedMs, records }: TrialStart): Trial | undefined => {
      const window = windowAt(receivedMs)
      if (window.entries.has(unit) || window.entries.size >= MAX_UNITS) return undefined
      const entry: Entry = { side, stratum: stratumOf(records), outcome: 'open', latencyMs: undefined }
      window.entries.set(unit, entry)
      window.open += 1
      const isOpen = (): boolean => entry.outcome === 'open' && window.entries.get(unit) === entry
      return {
        end: ({ outcome, latencyMs }) => {
          if (!isOpen()) return
          const isSlow = isSlowAgainst(window.latencies.get(entry.stratum) ?? [], latencyMs)
          entry.outcome = outcome === 'good' && isSlow ? 'slow' : outcome
          entry.latencyMs = latencyMs
          window.open -= 1
        },
        drop: () => {
          if (!isOpen()) return
          window.entries.delete(unit)
          window.open -= 1
        },
      }
    },
    /** Returns the trials of each window that is over, in order. A window waits for its trials, and later windows wait for it. */
    close: (nowMs: number): readonly (readonly CountedTrial[])[] => {
      const closed: (readonly CountedTrial[])[] = []
      for (let window = windows[0]; window !== undefined && isOver(window, nowMs); window = windows[0]) {
        windows.shift()
        const trials: CountedTrial[] = []
        for (const { side, stratum, outcome, latencyMs } of window.entries.values()) {
          trials.push({ side, stratum, outcome: outcome === 'open' ? 'unknown' : outcome })
          if (side === 'v2') keep(stratum, latencyMs)
        }
        closed.push(trials)
      }
      return closed
    },
  }
}

/** Sizes up to which a class goes. A batch is the likelier bad the more records it has, and schools differ in that. */
const sizes = [1, 7, 31, 127]

function stratumOf(records: number): number {
  const found = sizes.findIndex((size) => records <= size)
  return found === -1 ? sizes.length : found
}

/** The latest writes on V2 of one size by which slowness is judged, and how many it takes. */
const [MAX_SAMPLES, MIN_SAMPLES] = [500, 50]
/** A write is slow above 2 s and three times V2's 95th percentile: V3 may be slower than V2 in each of its calls without any harm. */
const [FLOOR_MS, TIMES_P95] = [2_000, 3]

function isSlowAgainst(ofV2: readonly number[], latencyMs = 0): boolean {
  if (latencyMs <= FLOOR_MS || ofV2.length < MIN_SAMPLES) return false
  const sorted = ofV2.toSorted((one, other) => one - other)
  return latencyMs > TIMES_P95 * (sorted[Math.floor(0.95 * sorted.length)] ?? Infinity)
}
