/** Trials of one stratum of a window, and how many of them were bad. */
export interface Counts {
  /** On V3. */
  readonly trials: number
  readonly bad: number
  /** On V2. */
  readonly controlTrials: number
  readonly controlBad: number
}

/** True where the split of the bad trials over both groups can say anything. */
export function isInformative({ trials, bad, controlTrials, controlBad }: Counts): boolean {
  const allBad = bad + controlBad
  return trials > 0 && controlTrials > 0 && allBad > 0 && allBad < trials + controlTrials
}

/**
 * The logarithm of the likelihood ratio of two ratios of odds, given how many trials were bad in all (Fisher's noncentral hypergeometric
 * distribution): how bad the window was for both groups cancels out. Its expectation as a ratio is at most 1 for any odds up to `tolerated`,
 * since it rises with `bad`.
 */
export function logOddsEvidence(counts: Counts, odds: number, tolerated: number): number {
  if (!isInformative(counts)) return 0
  return (
    counts.bad * Math.log(odds / tolerated) - logNormalizer(counts, odds) + logNormalizer(counts, tolerated)
  )
}

/** Up to a factor that does not depend on the odds, the logarithm of the sum of C(trials, x) C(controlTrials, allBad - x) odds^x. */
function logNormalizer({ trials, bad, controlTrials, controlBad }: Counts, odds: number): number {
  const allBad = bad + controlBad
  const lowest = Math.max(0, allBad - controlTrials)
  const highest = Math.min(trials, allBad)
  let term = lowest * Math.log(odds)
  let largest = term
  let sum = 1
  for (let x = lowest; x < highest; x++) {
    const next = ((trials - x) * (allBad - x)) / ((x + 1) * (controlTrials - allBad + x + 1))
    term += Math.log(next * odds)
    if (term > largest) {
      sum = sum * Math.exp(largest - term) + 1
      largest = term
    } else sum += Math.exp(term - largest)
  }
  return largest + Math.log(sum)
}
