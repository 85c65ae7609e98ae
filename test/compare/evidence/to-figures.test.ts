import fc from 'fast-check'
import { describe, expect, it } from 'vitest'

import { cappedSum, neededTrials, upperBound } from '../../../src/compare/evidence/read-evidence.ts'

describe('upperBound', () => {
  // One-sided 95 % bounds equal the upper ends of two-sided 90 % Clopper-Pearson intervals, from R's binom.test(x, n, conf.level = 0.9).
  it.each([
    [0, 10, 0.2588656],
    [1, 10, 0.3941633],
    [2, 10, 0.5069013],
    [5, 10, 0.7775588],
    [0, 59, 0.0495097],
    [1, 100, 0.0465605],
    [10, 100, 0.1637154],
  ])('equals $2 for %s differences in %s trials at a confidence of 95 %%', (differing, trials, bound) => {
    expect(upperBound(differing, trials, 0.95)).toBeCloseTo(bound, 5)
  })

  // Beta quantiles of Boost's algorithm, computed with @stdlib/stats-base-dists-beta-quantile 0.2.3.
  it.each([
    [0, 1, 0.5, 0.5],
    [0, 1, 0.95, 0.95],
    [0, 1, 0.9999, 0.9999],
    [1, 2, 0.95, 0.9746794344808963],
    [1, 3, 0.9999, 0.9942153324071126],
    [2, 3, 0.5, 0.7937005259840998],
    [3, 4, 0.99, 0.9974905699336811],
    [4, 5, 0.95, 0.9897937816869885],
    [1, 10, 0.9999, 0.7123243502127836],
    [0, 598, 0.95, 0.004997058694246506],
    [597, 598, 0.95, 0.9999142289387694],
    [9_999, 10_000, 0.9999, 0.9999999899995],
    [0, 50_000, 0.9999, 0.0001841898424072798],
    [1, 50_000, 0.5, 0.00003356671210101754],
    [250, 50_000, 0.95, 0.005550772968491891],
    [25_000, 50_000, 0.99, 0.5052117044322537],
    [49_999, 50_000, 0.95, 0.9999989741346385],
    [3, 500_000, 0.95, 0.00001550723933956406],
    [2_500, 500_000, 0.95, 0.005167213728436158],
  ])(
    'equals $3 to seven digits for %s differences in %s trials at a confidence of %s',
    (differing, trials, confidence, bound) => {
      expect(Math.abs(upperBound(differing, trials, confidence) / bound - 1)).toBeLessThan(1e-7)
    },
  )

  it('equals 1 - 0.05^(1/trials) if no trial differs', () => {
    for (const trials of [1, 7, 598, 12_345, 50_000])
      expect(upperBound(0, trials, 0.95)).toBeCloseTo(1 - 0.05 ** (1 / trials), 10)
  })

  it('is 1 if there are no trials, or if all trials differ', () => {
    expect([upperBound(0, 0, 0.95), upperBound(5, 5, 0.95), upperBound(9, 5, 0.95)]).toEqual([1, 1, 1])
  })

  it('is the share of differing trials for which the probability of at most the given number of differences is 1 - confidence', () => {
    // Returns the exact probability of at most x differences, which is 1 - confidence at the bound.
    const atMost = (x: number, n: number, p: number): number => {
      let term = (1 - p) ** n
      let sum = term
      for (let k = 1; k <= x; k += 1) {
        term *= ((n - k + 1) / k) * (p / (1 - p))
        sum += term
      }
      return sum
    }
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 600 }),
        fc.double({ min: 0, max: 0.2, noNaN: true }),
        fc.constantFrom(0.9, 0.95, 0.99),
        (trials, share, confidence) => {
          const differing = Math.floor(trials * share)
          const bound = upperBound(differing, trials, confidence)
          expect(atMost(differing, trials, bound)).toBeCloseTo(1 - confidence, 6)
        },
      ),
      { numRuns: 200 },
    )
  })

  it.each([
    [0, 0.005, 598],
    [1, 0.005, 947],
    [0, 0.01, 299],
    [0, 0.05, 59],
  ])('falls below $1 at $2 trials with %s differences', (differing, limit, trials) => {
    expect(neededTrials(differing, limit, 0.95)).toBe(trials)
    expect(upperBound(differing, trials, 0.95)).toBeLessThan(limit)
    expect(upperBound(differing, trials - 1, 0.95)).toBeGreaterThanOrEqual(limit)
  })
})

describe('cappedSum', () => {
  it.each([
    ['five equal schools', [100, 100, 100, 100, 100], 500],
    ['four schools', [100, 100, 100, 100], 0],
    ['one school that is 99 % of the traffic', [9_900, 20, 20, 20, 20, 20], 125],
    ['one small school', [100, 100, 100, 100, 10], 50],
    ['no school', [], 0],
  ])('counts $2 learner-days of %s if no school may have more than a fifth', (_, pairs, counted) => {
    expect(cappedSum(pairs, 0.2)).toBe(counted)
  })

  it('returns the number of all pairs if the cap is 1', () => {
    expect(cappedSum([7, 3], 1)).toBe(10)
  })

  it('returns the largest number of pairs to which no school contributes more than the cap', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 0, max: 1_000 }), { maxLength: 40 }),
        fc.constantFrom(0.1, 0.2, 0.25, 0.5),
        (pairs, share) => {
          const counted = cappedSum(pairs, share)
          const within = (total: number): number =>
            pairs.reduce((sum, count) => sum + Math.min(count, share * total), 0)
          expect(within(counted)).toBeGreaterThanOrEqual(counted - 1e-6)
          expect(within(counted + 1)).toBeLessThan(counted + 1)
          // Pairs of the largest school beyond the cap never count.
          const [first = 0, ...rest] = pairs
          const more = cappedSum([first + 1_000_000, ...rest], share)
          expect(more).toBeLessThanOrEqual(rest.reduce((sum, count) => sum + count, 0) / (1 - share) + 1e-6)
        },
      ),
    )
  })
})
