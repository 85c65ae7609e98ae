import type { Comparison, FieldDifference } from '../verdict.ts'

/**
 * A comparison without what V2 differs from itself in: `noise` is the comparison of the same record as V2 gave it twice. A field that
 * V2 does not repeat, or a record, says nothing of V3: the record is compared by its other fields.
 */
export function withoutNoise(comparison: Comparison, noise: Comparison): Comparison {
  if (comparison.verdict !== 'differs' || noise.differences.length === 0) return comparison
  const noisy = new Set(noise.differences.map(({ path }) => path))
  const differences = comparison.differences.filter(({ path }: FieldDifference) => !noisy.has(path))
  if (differences.length === comparison.differences.length) return comparison
  if (differences.length > 0) return { ...comparison, differences }
  const verdict = comparison.equivalences.length > 0 ? 'equivalent' : 'same'
  return { verdict, differences, equivalences: comparison.equivalences }
}
