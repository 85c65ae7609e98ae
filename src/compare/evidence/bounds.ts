import quantile from '@stdlib/stats-base-dists-beta-quantile'

/**
 * The upper confidence bound of a share after `differing` of `trials` (Clopper and Pearson 1934, one-sided): the true share is above it with
 * a probability of at most 1 - `confidence`, for any true share. 1 without a trial.
 */
export function upperBound(differing: number, trials: number, confidence: number): number {
  if (differing >= trials) return 1
  return quantile(confidence, differing + 1, trials - differing)
}

/** The smallest number of trials with `differing` whose bound is under `limit`. */
export function neededTrials(differing: number, limit: number, confidence: number): number {
  let high = Math.max(1, 2 * differing)
  while (upperBound(differing, high, confidence) >= limit) high *= 2
  let low = differing
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2)
    if (upperBound(differing, middle, confidence) >= limit) low = middle
    else high = middle
  }
  return high
}
/**
 * How many pairs count when no school may make up more than `share` of those that count: the largest N with N = the sum over schools of
 * min(pairs, share × N). With fewer than 1 / `share` schools it is 0.
 */
export function cappedSum(pairs: readonly number[], share: number): number {
  const sorted = pairs.filter((count) => count > 0).sort((one, other) => other - one)
  let rest = sorted.reduce((sum, count) => sum + count, 0)
  if (share >= 1) return rest
  for (const [capped, largest] of sorted.entries()) {
    const free = 1 - share * capped
    if (free <= 0) return 0
    // With this many schools at their cap the others make up the rest.
    const total = rest / free
    if (largest <= share * total + EPSILON) return Math.floor(total + EPSILON)
    rest -= largest
  }
  return 0
}

/** Counts are whole, shares are not. */
const EPSILON = 1e-6
