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
