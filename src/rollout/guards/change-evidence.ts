/**
 * Evidence that something became worse at some time, as logarithms, one for each alternative. The evidence of an alternative is the sum over all
 * windows in which the change may have happened of (the prior of that window × the product of the likelihood ratios since). Priors
 * add up to 1 over all windows that can ever come, so this is a nonnegative supermartingale as long as nothing is worse, and by Ville's inequality it
 * reaches 1/alpha ever with a probability of at most alpha. A product since the first window would have the same property, but a year without a
 * fault would make it so small that a fault after it is found a year later. Empty: no window yet.
 */
export type LogEvidence = readonly number[]

/** The sum of 1 / (n ln² n) from n = 2. */
const PRIOR_SUM = 2.10975

/** The logarithm of the prior of the nth of a sequence without an end, n from 1: falls slowly enough to find what comes late. */
export function logPrior(nth: number): number {
  const n = nth + 1
  return -Math.log(PRIOR_SUM * n) - 2 * Math.log(Math.log(n))
}

/** The evidence after one more window; `nth` counts windows, `ratios` are the logarithms of its likelihood ratios. */
export function advanced(evidence: LogEvidence, nth: number, ratios: readonly number[]): LogEvidence {
  const prior = logPrior(nth)
  return ratios.map((ratio, index) => logSum([evidence[index] ?? -Infinity, prior]) + ratio)
}

/** The logarithm of the mean over the alternatives. */
export function totalOf(evidence: LogEvidence): number {
  return evidence.length === 0 ? -Infinity : logSum(evidence) - Math.log(evidence.length)
}

function logSum(logs: readonly number[]): number {
  const largest = Math.max(...logs)
  if (largest === -Infinity) return largest
  return largest + Math.log(logs.reduce((sum, log) => sum + Math.exp(log - largest), 0))
}
