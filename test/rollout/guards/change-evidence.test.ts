import { describe, expect, it } from 'vitest'

import { advanced, type LogEvidence, logPrior, totalOf } from '../../../src/rollout/guards/change-evidence.ts'
import { logOddsEvidence } from '../../../src/rollout/guards/odds-ratio.ts'
import { createRandom } from './simulate.ts'

const factors = [3, 12, 50]

/** The logarithms of the ratios of a window of 4 trials on V3 and 16 on V2. */
function windowOf(random: () => number, badOnV3: number, badOnV2: number): number[] {
  const count = (trials: number, share: number): number => {
    let bad = 0
    for (let trial = 0; trial < trials; trial++) if (random() < share) bad += 1
    return bad
  }
  const counts = { trials: 4, bad: count(4, badOnV3), controlTrials: 16, controlBad: count(16, badOnV2) }
  return factors.map((factor) => logOddsEvidence(counts, factor * 2, 2))
}

describe('evidence of a change', () => {
  it('divides no more than the probability 1 over all windows that can ever come', () => {
    let sum = 0
    for (let nth = 1; nth <= 1_000_000; nth++) sum += Math.exp(logPrior(nth))
    // The sum of the rest is about 1 / (2.11 ln n).
    expect(sum + 1 / (2.10975 * Math.log(1_000_001))).toBeLessThanOrEqual(1.00001)
    expect(sum).toBeGreaterThan(0.9)
  })

  it('reaches 1/alpha in at most the share alpha of runs, at the very edge of what is tolerated', () => {
    const runs = 400
    let [crossed5, crossed20] = [0, 0]
    for (let seed = 1; seed <= runs; seed++) {
      const random = createRandom(seed)
      let evidence: LogEvidence = []
      let highest = -Infinity
      for (let nth = 1; nth <= 400; nth++) {
        // Shares with odds of exactly 2 to 1, and another level in each window.
        const onV2 = random() * 0.3
        const odds = (2 * onV2) / (1 - onV2)
        evidence = advanced(evidence, nth, windowOf(random, odds / (1 + odds), onV2))
        highest = Math.max(highest, totalOf(evidence))
      }
      if (highest >= Math.log(20)) crossed5 += 1
      if (highest >= Math.log(5)) crossed20 += 1
    }
    expect(crossed5 / runs).toBeLessThanOrEqual(0.05)
    expect(crossed20 / runs).toBeLessThanOrEqual(0.2)
  })

  it('finds a fault after a long time without one as fast as at the start, but for a logarithm; a plain product does not', () => {
    const random = createRandom(7)
    let evidence: LogEvidence = []
    let product = factors.map(() => 0)
    const add = (nth: number, badOnV3: number): void => {
      const ratios = windowOf(random, badOnV3, 0.02)
      evidence = advanced(evidence, nth, ratios)
      product = product.map((log, index) => log + (ratios[index] ?? 0))
    }
    let nth = 1
    while (nth <= 20_000) add(nth++, 0.02)
    const began = nth
    while (totalOf(evidence) < Math.log(100_000)) add(nth++, 0.5)
    expect(nth - began).toBeLessThan(20)
    expect(totalOf(product)).toBeLessThan(-500)
  })
})
