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
