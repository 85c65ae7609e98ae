import fc from 'fast-check'
import { describe, expect, it } from 'vitest'

import { logOddsEvidence } from '../../../src/rollout/guards/odds-ratio.ts'

const choose = (n: number, k: number): number => {
  let ways = 1
  for (let i = 0; i < k; i++) ways *= (n - i) / (i + 1)
  return ways
}

/** The probabilities of each number of bad trials in the first group, where its odds are `odds` times those of the other. */
function distribution(
  trials: number,
  controlTrials: number,
  allBad: number,
  odds: number,
): Map<number, number> {
  const weights = new Map<number, number>()
  for (let bad = Math.max(0, allBad - controlTrials); bad <= Math.min(trials, allBad); bad++) {
    weights.set(bad, choose(trials, bad) * choose(controlTrials, allBad - bad) * odds ** bad)
  }
  const sum = [...weights.values()].reduce((total, weight) => total + weight, 0)
  return new Map([...weights].map(([bad, weight]) => [bad, weight / sum]))
}

const groups = fc.record({
  trials: fc.integer({ min: 1, max: 25 }),
  controlTrials: fc.integer({ min: 1, max: 25 }),
  badShare: fc.double({ min: 0, max: 1, noNaN: true }),
  tolerated: fc.constantFrom(1, 2, 4),
  factor: fc.constantFrom(3, 12, 50),
  odds: fc.double({ min: 0.05, max: 1, noNaN: true }),
})

describe('evidence of one window', () => {
  it('has an expectation of at most 1 for any odds up to those that are tolerated, however bad the window is', () => {
    fc.assert(
      fc.property(groups, ({ trials, controlTrials, badShare, tolerated, factor, odds }) => {
        const allBad = Math.round(badShare * (trials + controlTrials))
        let expectation = 0
        for (const [bad, probability] of distribution(trials, controlTrials, allBad, odds * tolerated)) {
          const counts = { trials, bad, controlTrials, controlBad: allBad - bad }
          expectation += probability * Math.exp(logOddsEvidence(counts, factor * tolerated, tolerated))
        }
        expect(expectation).toBeLessThanOrEqual(1 + 1e-9)
      }),
    )
  })

  it('is the ratio of both likelihoods', () => {
    fc.assert(
      fc.property(groups, ({ trials, controlTrials, badShare, tolerated, factor }) => {
        const allBad = Math.round(badShare * (trials + controlTrials))
        const worse = distribution(trials, controlTrials, allBad, factor * tolerated)
        for (const [bad, probability] of distribution(trials, controlTrials, allBad, tolerated)) {
          const counts = { trials, bad, controlTrials, controlBad: allBad - bad }
          const expected = Math.log((worse.get(bad) ?? 0) / probability)
          expect(logOddsEvidence(counts, factor * tolerated, tolerated)).toBeCloseTo(expected, 6)
        }
      }),
    )
  })

  it('stays a number for thousands of trials', () => {
    const counts = { trials: 40_000, bad: 20_000, controlTrials: 160_000, controlBad: 800 }
    expect(logOddsEvidence(counts, 100, 2)).toBeGreaterThan(1_000)
    expect(Number.isFinite(logOddsEvidence(counts, 100, 2))).toBe(true)
  })

  it('says nothing without both groups, without a bad trial, and where all are bad', () => {
    const rows = [
      { trials: 0, bad: 0, controlTrials: 9, controlBad: 3 },
      { trials: 9, bad: 3, controlTrials: 0, controlBad: 0 },
      { trials: 9, bad: 0, controlTrials: 9, controlBad: 0 },
      { trials: 9, bad: 9, controlTrials: 9, controlBad: 9 },
    ]
    expect(rows.map((counts) => logOddsEvidence(counts, 12, 2))).toEqual([0, 0, 0, 0])
  })
})
