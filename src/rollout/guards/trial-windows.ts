import type { Side } from '../stage.ts'

/** The bad outcomes of a write, worst first. A write with several bad outcomes counts as the first of them. */
export const badOutcomes = ['unknown', 'serverError', 'refused', 'slow'] as const
export type BadOutcome = (typeof badOutcomes)[number]

export interface TrialResult {
  /** `unknown`: a record may have been applied. `serverError`: V2 or V3 did not accept the write. `refused`: V2 or V3 refused a record. */
  readonly outcome: 'good' | Exclude<BadOutcome, 'slow'>
  /** The duration in milliseconds, without time in a queue. If it is `undefined`, the write does not count as slow. */
  readonly latencyMs?: number | undefined
}

export interface TrialStart {
  readonly unit: string
  readonly side: Side
  readonly receivedMs: number
  /** The approximate number of records, by the same rule on both sides. Only writes of similar size are compared with each other. */
  readonly records: number
}

/** A write in progress that counts as a trial. Only the first call of `end` counts. */
export interface Trial {
  end(result: TrialResult): void
  /** Removes the trial of a write that never reached V2 or V3, so that the next write of the unit counts instead. */
  drop(): void
}

export interface CountedTrial {
  readonly side: Side
  readonly stratum: number
  readonly outcome: 'good' | BadOutcome
}

export type TrialWindows = ReturnType<typeof createTrialWindows>

const WINDOW_MS = 10_000
/** The time in milliseconds after which an open trial counts as unknown. No request takes so long. */
const MAX_TRIAL_MS = 180_000
const MAX_UNITS = 5_000

interface Entry extends Omit<CountedTrial, 'outcome'> {
  outcome: CountedTrial['outcome'] | 'open'
  latencyMs: number | undefined
}

interface OpenWindow {
  readonly startMs: number
  readonly entries: Map<string, Entry>
  /**
   * A copy of the latest durations on V2 by size class, made when the window began, because trials of the window must not move its
   * threshold.
   */
  readonly latencies: ReadonlyMap<number, readonly number[]>
  open: number
}

/**
 * Creates the windows for the writes of one partner, by the time of receipt. In each window only the first write of a unit that reaches V2
 * or V3 counts. Writes that one school sends together often fail for one reason, such as a broken connection, so counting all of them would
 * count one event many times. Windows close in order, even if the trials of a window take long. Otherwise the slow failures of one side
 * would enter the evidence later than the writes of the other side.
 */
export function createTrialWindows() {
  const windows: OpenWindow[] = []
  const latencies = new Map<number, readonly number[]>()
  const windowAt = (receivedMs: number): OpenWindow => {
    const startMs = Math.floor(receivedMs / WINDOW_MS) * WINDOW_MS
    const last = windows.at(-1)
    // Also returns the latest window if the clock was set back, so that windows stay in order.
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
    /** Begins a trial. Returns `undefined` if the unit already has a trial in this window, or if the window is full. */
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
    /** Returns the trials of each window that is over, in order. A window waits for its trials, and later windows wait for that window. */
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

/** The upper bounds of the size classes, in records. Size matters because a larger batch is more likely to be bad, and schools differ in size. */
const sizes = [1, 7, 31, 127]

function stratumOf(records: number): number {
  const found = sizes.findIndex((size) => records <= size)
  return found === -1 ? sizes.length : found
}

/**
 * A write is compared with the latest writes of the same size class on V2: at most `MAX_SAMPLES`. With fewer than `MIN_SAMPLES` no write
 * counts as slow.
 */
const [MAX_SAMPLES, MIN_SAMPLES] = [500, 50]
/**
 * A write is slow if it takes more than 2 s and more than three times V2's 95th percentile. It does no harm if V3 is a little slower than
 * V2.
 */
const [FLOOR_MS, TIMES_P95] = [2_000, 3]

function isSlowAgainst(ofV2: readonly number[], latencyMs = 0): boolean {
  if (latencyMs <= FLOOR_MS || ofV2.length < MIN_SAMPLES) return false
  const sorted = ofV2.toSorted((one, other) => one - other)
  return latencyMs > TIMES_P95 * (sorted[Math.floor(0.95 * sorted.length)] ?? Infinity)
}
