/** Above which latency a write counts as slow, for each class of size. */
export interface SlowThresholds {
  /** The thresholds as they are now; later samples do not change them. Undefined: too few samples. */
  current(): (stratum: number) => number | undefined
  /** Adds the latency of a write that V2 served. */
  add(stratum: number, latencyMs: number): void
  /** Older windows count less. */
  windowOver(): void
}

/** Half of the weight is in the last 100 windows. */
const DECAY = 0.5 ** (1 / 100)
const MIN_SAMPLES = 50
/** V3 may be slower than V2 in each of its calls without any harm. */
const TIMES_P95 = 3
const FLOOR_MS = 2_000
/** Each bucket ends at a quarter of an octave above the one before. */
const BUCKETS_PER_OCTAVE = 4

interface Histogram {
  readonly weights: number[]
  total: number
}

/** Creates thresholds of three times the 95th percentile of V2's latency in the windows before, and at least 2 s. */
export function createSlowThresholds(): SlowThresholds {
  const histograms = new Map<number, Histogram>()
  return {
    current: () => {
      const above = new Map([...histograms].map(([stratum, histogram]) => [stratum, thresholdOf(histogram)]))
      return (stratum) => above.get(stratum)
    },
    add: (stratum, latencyMs) => {
      const histogram = histograms.get(stratum) ?? { weights: [], total: 0 }
      histograms.set(stratum, histogram)
      const bucket = Math.min(
        100,
        Math.max(0, Math.ceil(Math.log2(Math.max(1, latencyMs)) * BUCKETS_PER_OCTAVE)),
      )
      while (histogram.weights.length <= bucket) histogram.weights.push(0)
      histogram.weights[bucket] = (histogram.weights[bucket] ?? 0) + 1
      histogram.total += 1
    },
    windowOver: () => {
      for (const histogram of histograms.values()) {
        histogram.weights.forEach((weight, bucket) => (histogram.weights[bucket] = weight * DECAY))
        histogram.total *= DECAY
      }
    },
  }
}

function thresholdOf({ weights, total }: Histogram): number | undefined {
  if (total < MIN_SAMPLES) return undefined
  let below = 0
  const bucket = weights.findIndex((weight) => (below += weight) >= 0.95 * total)
  const p95Ms = 2 ** ((bucket === -1 ? weights.length - 1 : bucket) / BUCKETS_PER_OCTAVE)
  return Math.max(FLOOR_MS, TIMES_P95 * p95Ms)
}
