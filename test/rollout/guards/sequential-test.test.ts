import fc from 'fast-check'
import { describe, expect, it } from 'vitest'

import {
  addWindow,
  advanced,
  atRevision,
  describeAlarm,
  formatGuardState,
  type GuardVerdict,
  judge,
  type LogEvidence,
  logOddsEvidence,
  logPrior,
  newGuardState,
  parseGuardState,
  type GuardState,
  totalOf,
} from '../../../src/rollout/guards/sequential-test.ts'
import { runWithoutFault } from './no-fault.ts'
import { type BadShare, createRandom, simulate, type Simulated, type SimulatedSchool } from './simulate.ts'

/** Returns schools of equal size. The first `onV3` schools are on V3. */
function schoolsOf(all: number, onV3: number, batches: number, records: number): SimulatedSchool[] {
  return Array.from({ length: all }, (_, index) => ({
    name: `school ${index}`,
    side: index < onV3 ? ('v3' as const) : ('v2' as const),
    batches,
    records,
  }))
}

/** Simulates windows until the guards raise an alarm or `windows` windows have ended. */
function runUntilAlarm(
  schools: readonly SimulatedSchool[],
  badShare: BadShare,
  seed: number,
  { windows = 10_000, after }: { windows?: number; after?: Simulated } = {},
): { readonly state: GuardVerdict; readonly run: Simulated } {
  const first = after?.windows ?? 0
  const stateOf = (run: Simulated): GuardVerdict => judge(run.evidence)
  const isOver = (run: Simulated): boolean => run.windows >= first + windows || stateOf(run).kind === 'alarm'
  const run = simulate(schools, badShare, createRandom(seed), isOver, after?.evidence, first)
  return { state: stateOf(run), run }
}

const quiet: BadShare = () => ({ unknown: 0.0005, refused: 0.002 })
const v3Fails =
  (share: number): BadShare =>
  ({ side }) => ({ unknown: side === 'v3' ? share : 0.0005, refused: 0.002 })

describe('judge', () => {
  it('raises an alarm within 10,000 records after V3 begins to fail 5 % of the records, however long the run has lasted', () => {
    for (const [name, schools, bound] of [
      ['20 schools, 20 % on V3, registers of 30', schoolsOf(20, 4, 0.3, 30), 5_000],
      ['200 schools, 10 % on V3, registers of 30', schoolsOf(200, 20, 0.3, 30), 4_000],
      ['20 schools, 50 % on V3, single records', schoolsOf(20, 10, 0.3, 1), 6_000],
      ['20 schools, 80 % on V3, registers of 5', schoolsOf(20, 16, 0.3, 5), 10_000],
    ] as const) {
      let before: Simulated | undefined
      for (const [seed, quietWindows] of [0, 30, 300, 1_000, 3_000].entries()) {
        const more = { windows: quietWindows - (before?.windows ?? 0), ...(before && { after: before }) }
        before = runUntilAlarm(schools, quiet, 100 + seed, more).run
        const { state, run } = runUntilAlarm(schools, v3Fails(0.05), 200 + seed, { after: before })
        expect([name, quietWindows, state.kind]).toEqual([name, quietWindows, 'alarm'])
        expect(run.v3Records).toBeLessThan(bound)
      }
    }
  })

  it('raises no alarm in long runs without a fault', () => {
    for (let seed = 1; seed <= 25; seed++) {
      const { state, v3Records } = runWithoutFault(seed, 1_500)
      expect({ seed, kind: state.kind, v3Records }).not.toMatchObject({ kind: 'alarm' })
    }
  })

  it.each<[what: string, onV3: number, badShare: BadShare, windows: number, kind: GuardVerdict['kind']]>([
    ['one broken school of 4 on V3', 4, ({ name }) => ({ unknown: name === 'school 0' ? 1 : 0.0005 }), 100, 'alarm'],
    ['one broken school of 19 on V3', 19, ({ name }) => ({ unknown: name === 'school 0' ? 1 : 0.0005 }), 2_000, 'ok'],
    ['a broken school that is the only one on V3', 1, ({ name }) => ({ unknown: name === 'school 0' ? 1 : 0.0005 }), 100, 'alarm'],
    ['two schools on V3 that both fail', 2, v3Fails(1), 100, 'alarm'],
    ['4 schools on V3 that all fail', 4, v3Fails(1), 30, 'alarm'],
    ['16 schools on V3 that all fail', 16, v3Fails(1), 30, 'alarm'],
    ['writes that V2 loses', 8, ({ side }) => ({ unknown: side === 'v2' ? 0.05 : 0.0005 }), 800, 'ok'],
    ['writes that V2 does not apply, and fewer that V3 refuses', 8, ({ side }) => (side === 'v2' ? { serverError: 0.3 } : { refused: 0.1 }), 800, 'ok'],
    ['writes that V3 refuses', 8, ({ side }) => (side === 'v2' ? { serverError: 0.0005 } : { refused: 0.1 }), 800, 'alarm'],
    ['no writes on V2 at the same time', 20, () => ({ unknown: 0.5 }), 1_000, 'inconclusive'],
    // A guard without tolerated odds would raise an alarm in the next row, and a guard that counts each batch as a trial in the row after.
    ['schools that differ slightly but permanently', 4, ({ side }) => ({ unknown: side === 'v3' ? 0.035 : 0.02 }), 5_000, 'ok'],
    ['a second without service while a school sends its registers', 4, (_, nowMs) => ({ unknown: nowMs % 10_000 < 300 ? 1 : 0 }), 3_000, 'ok'],
  ])('returns the verdict "$4" for %s', (what, onV3, badShare, windows, kind) => {
    const [batches, records] = what.startsWith('a second') ? [10, 1] : [0.5, 10]
    const { state } = runUntilAlarm(schoolsOf(20, onV3, batches, records), badShare, 5, { windows })
    expect(state.kind).toBe(kind)
  }) // prettier-ignore

  it('reports only the figures since V3 became worse', () => {
    const before = runUntilAlarm(schoolsOf(20, 4, 0.5, 10), quiet, 1, { windows: 3_000 }).run
    const { state } = runUntilAlarm(schoolsOf(20, 4, 0.5, 10), v3Fails(1), 2, { after: before })
    const text = state.kind === 'alarm' ? describeAlarm(state.figures) : ''
    expect(text).toMatch(
      /^V3 does worse than V2 in the same period: (\d+) of \1 counted writes on V3 were bad \(\1 of unknown outcome\), \d of \d\d on V2\.$/,
    )
  })

  it('returns "inconclusive" for few or no trials, even in a long run', () => {
    expect(judge(newGuardState).kind).toBe('inconclusive')
    const after = (windows: number, schools: readonly SimulatedSchool[]): GuardState =>
      runUntilAlarm(schools, quiet, 1, { windows }).run.evidence
    expect(judge(after(4_000, schoolsOf(20, 4, 0.002, 30))).kind).toBe('inconclusive')
    expect(judge(after(1_000, schoolsOf(20, 0, 0.5, 30))).kind).toBe('inconclusive')
    const enough = after(500, schoolsOf(20, 4, 0.5, 1))
    expect(judge(enough).kind).toBe('ok')
    expect(judge(atRevision(enough, 7)).kind).toBe('inconclusive')
  })

  it('raises an alarm if V3 becomes slow', () => {
    const windows = (count: number, onV3: 'good' | 'slow') =>
      Array.from({ length: count }, () =>
        Array.from({ length: 20 }, (_, unit) => {
          const [side, outcome] = unit < 5 ? (['v3', onV3] as const) : (['v2', 'good'] as const)
          return { side, stratum: 1, outcome }
        }),
      )
    const well = windows(500, 'good').reduce(addWindow, newGuardState)
    expect(judge(well)).toEqual({ kind: 'ok', figures: undefined })
    // The verdict has figures even before an alarm.
    const begun = judge(windows(1, 'slow').reduce(addWindow, well))
    expect(begun).toMatchObject({ kind: 'ok', figures: { v3: { slow: 5 }, v2: { slow: 0 } } })
    expect(judge(windows(10, 'slow').reduce(addWindow, well)).kind).toBe('alarm')
  })
})

describe('atRevision', () => {
  const failing = runUntilAlarm(schoolsOf(20, 4, 0.5, 10), v3Fails(0.5), 1).run.evidence

  it('restarts the evidence at a new revision, so that only a new failure of V3 raises an alarm', () => {
    const mended = atRevision(failing, 7)
    expect(judge(mended).kind).not.toBe('alarm')
    const after = { evidence: mended, v3Records: 0, windows: 1_000 }
    const schools = schoolsOf(20, 4, 0.5, 10)
    expect(runUntilAlarm(schools, quiet, 1, { windows: 1_000, after }).state.kind).toBe('ok')
    expect(runUntilAlarm(schools, v3Fails(0.5), 1, { after }).state.kind).toBe('alarm')
  })

  it('starts a new episode at a new revision only if the current episode has trials', () => {
    expect(atRevision(failing, failing.revision)).toBe(failing)
    const other = atRevision(failing, 7)
    expect(other).toEqual({ ...newGuardState, revision: 7, episode: 2 })
    expect(judge(other).kind).toBe('inconclusive')
    // No trial was counted at revision 7, so revision 8 starts no new episode.
    expect(atRevision(other, 8).episode).toBe(2)
  })
})

const choose = (n: number, k: number): number => {
  let ways = 1
  for (let i = 0; i < k; i++) ways *= (n - i) / (i + 1)
  return ways
}

/** Returns the probability of each number of bad trials in the first group, if its odds are `odds` times the odds of the second group. */
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

describe('logOddsEvidence', () => {
  it('returns evidence with an expected value of at most 1 if the odds do not exceed the tolerated odds', () => {
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

  it('returns the logarithm of the likelihood ratio', () => {
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

  it('returns a finite number for many thousands of trials', () => {
    const counts = { trials: 40_000, bad: 20_000, controlTrials: 160_000, controlBad: 800 }
    expect(logOddsEvidence(counts, 100, 2)).toBeGreaterThan(1_000)
    expect(Number.isFinite(logOddsEvidence(counts, 100, 2))).toBe(true)
  })

  it('returns 0 if a group has no trials, if no trial is bad or if every trial is bad', () => {
    const rows = [
      { trials: 0, bad: 0, controlTrials: 9, controlBad: 3 },
      { trials: 9, bad: 3, controlTrials: 0, controlBad: 0 },
      { trials: 9, bad: 0, controlTrials: 9, controlBad: 0 },
      { trials: 9, bad: 9, controlTrials: 9, controlBad: 9 },
    ]
    expect(rows.map((counts) => logOddsEvidence(counts, 12, 2))).toEqual([0, 0, 0, 0])
  })
})

const factors = [3, 12, 50]

/** Draws a window with 4 trials on V3 and 16 trials on V2. Returns the logarithm of the evidence of the window for each factor. */
function windowOf(random: () => number, badOnV3: number, badOnV2: number): number[] {
  const count = (trials: number, share: number): number => {
    let bad = 0
    for (let trial = 0; trial < trials; trial++) if (random() < share) bad += 1
    return bad
  }
  const counts = { trials: 4, bad: count(4, badOnV3), controlTrials: 16, controlBad: count(16, badOnV2) }
  return factors.map((factor) => logOddsEvidence(counts, factor * 2, 2))
}

describe('the evidence of the sequential test', () => {
  it('gives its windows weights whose sum is at most 1', () => {
    let sum = 0
    for (let nth = 1; nth <= 1_000_000; nth++) sum += Math.exp(logPrior(nth))
    // The sum of the remaining weights is about 1 / (2.11 ln n).
    expect(sum + 1 / (2.10975 * Math.log(1_000_001))).toBeLessThanOrEqual(1.00001)
    expect(sum).toBeGreaterThan(0.9)
  })

  it('reaches 1/alpha in at most the share alpha of runs in which V3 is only as bad as tolerated', () => {
    const runs = 400
    let [crossed5, crossed20] = [0, 0]
    for (let seed = 1; seed <= runs; seed++) {
      const random = createRandom(seed)
      let evidence: LogEvidence = []
      let highest = -Infinity
      for (let nth = 1; nth <= 400; nth++) {
        // The odds of a bad trial on V3 are exactly twice the odds on V2, which is tolerated. The odds on V2 differ from window to window.
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
})

const { evidence } = simulate(
  schoolsOf(60, 50, 1, 5),
  () => ({ unknown: 0.02, serverError: 0.03, refused: 0.05 }),
  createRandom(1),
  ({ windows }) => windows >= 300,
)

describe('the text that formatGuardState returns', () => {
  it('has a limited size, and lets parseGuardState restore the evidence', () => {
    for (const one of [newGuardState, evidence, atRevision(evidence, 5)]) {
      const text = formatGuardState(one)
      const restored = parseGuardState(text)
      expect(restored).toEqual(parseGuardState(formatGuardState(restored)))
      expect({ ...restored, logs: 0 }).toEqual({ ...one, logs: 0 })
      expect(text.length).toBeLessThan(1_000)
    }
    expect(parseGuardState(formatGuardState(evidence)).windows).toBe(evidence.windows)
  })

  it('is rounded so that it never contains more evidence than the state', () => {
    const before = evidence.logs
    const after = parseGuardState(formatGuardState(evidence)).logs
    expect(after.every((log, index) => log <= (before[index] ?? -Infinity))).toBe(true)
  })

  it('is refused by parseGuardState if it is damaged, instead of being read as a state without evidence', () => {
    const text = formatGuardState(evidence)
    const replaced = [['"windows":', '"windows":-'], ['"logs":[', '"logs":["x",'], ['"revision":0', '"revision":null'], ['"version":2', '"version":3']] as const // prettier-ignore
    const damaged = ['', '[]', '{}', '{"version":1}', '{"version":2}', text.slice(0, -1)]
    damaged.push(...replaced.map(([from, to]) => text.replace(from, to)))
    for (const one of damaged)
      expect(() => parseGuardState(one)).toThrow(expect.objectContaining({ code: 'ADP_JOURNAL_DAMAGED' }))
  })
})
