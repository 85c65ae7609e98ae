import { describe, expect, it } from 'vitest'

import { addWindow } from '../../../src/rollout/guards/add-window.ts'
import { afterAct, atRevision, noEvidence } from '../../../src/rollout/guards/evidence.ts'
import { formatEvidence, parseEvidence } from '../../../src/rollout/guards/evidence-note.ts'
import { describeAlarm, type GuardVerdict, judge } from '../../../src/rollout/guards/judge.ts'
import { logOddsEvidence } from '../../../src/rollout/guards/odds-ratio.ts'
import { runWithoutFault } from './no-fault.ts'
import { type BadShare, createRandom, simulate, type Simulated, type SimulatedSchool } from './simulate.ts'

/** Schools of like size, the first of them on V3. */
function schoolsOf(all: number, onV3: number, batches: number, records: number): SimulatedSchool[] {
  return Array.from({ length: all }, (_, index) => ({
    name: `school ${index}`,
    side: index < onV3 ? ('v3' as const) : ('v2' as const),
    batches,
    records,
  }))
}

/** Runs until the guards raise an alarm or the windows are over. */
function runUntilAlarm(
  schools: readonly SimulatedSchool[],
  badShare: BadShare,
  seed: number,
  { windows = 10_000, after }: { windows?: number; after?: Simulated } = {},
): { readonly verdict: GuardVerdict; readonly run: Simulated } {
  const first = after?.windows ?? 0
  const verdictOf = (run: Simulated): GuardVerdict => judge(run.evidence)
  const isOver = (run: Simulated): boolean =>
    run.windows >= first + windows || verdictOf(run).verdict === 'alarm'
  const run = simulate(schools, badShare, createRandom(seed), isOver, after?.evidence, first)
  return { verdict: verdictOf(run), run }
}

const quiet: BadShare = () => ({ unknown: 0.0005, refused: 0.002 })
const v3Fails =
  (share: number): BadShare =>
  ({ side }) => ({ unknown: side === 'v3' ? share : 0.0005, refused: 0.002 })

describe('guards', () => {
  it('go back within a bounded number of records once V3 fails 5 % of them, at any time of a long run', () => {
    const rows = [
      { name: '20 schools, 20 % on V3, registers of 30', schools: schoolsOf(20, 4, 0.3, 30), bound: 5_000 },
      {
        name: '200 schools, 10 % on V3, registers of 30',
        schools: schoolsOf(200, 20, 0.3, 30),
        bound: 4_000,
      },
      { name: '20 schools, 50 % on V3, single records', schools: schoolsOf(20, 10, 0.3, 1), bound: 6_000 },
      { name: '20 schools, 80 % on V3, registers of 5', schools: schoolsOf(20, 16, 0.3, 5), bound: 10_000 },
    ]
    for (const { name, schools, bound } of rows) {
      const records = [0, 30, 300, 1_000, 1_000, 1_000, 3_000].map((quietWindows, seed) => {
        const before = runUntilAlarm(schools, quiet, 100 + seed, { windows: quietWindows }).run
        const { verdict, run } = runUntilAlarm(schools, v3Fails(0.05), 200 + seed, { after: before })
        expect(verdict.verdict).toBe('alarm')
        return run.v3Records
      })
      records.sort((one, other) => one - other)
      console.log(`${name}: ${records[3]} records of V3 until the alarm (median), ${records.at(-1)} (worst)`)
      expect(records.at(-1)).toBeLessThan(bound)
    }
  })

  it('raise no alarm in long runs without a fault', () => {
    for (let seed = 1; seed <= 25; seed++) {
      const { verdict, v3Records } = runWithoutFault(seed, 1_500)
      expect({ seed, verdict: verdict.verdict, v3Records }).not.toMatchObject({ verdict: 'alarm' })
    }
  })

  it('raise no alarm for a single broken school, and one where V3 serves no other', () => {
    const badShare: BadShare = ({ name }) => ({ unknown: name === 'school 0' ? 1 : 0.0005 })
    for (const [seed, onV3] of [
      [1, 4],
      [2, 10],
      [3, 19],
    ] as const) {
      const { verdict } = runUntilAlarm(schoolsOf(20, onV3, 0.5, 10), badShare, seed, { windows: 2_000 })
      expect(verdict.verdict).toBe('ok')
    }
    const { verdict, run } = runUntilAlarm(schoolsOf(20, 1, 0.5, 10), badShare, 5)
    expect(verdict.verdict).toBe('alarm')
    expect(run.windows).toBeLessThan(100)
  })

  it('find a V3 that fails for all its schools within minutes', () => {
    for (const onV3 of [1, 2, 4, 10, 16]) {
      const { verdict, run } = runUntilAlarm(schoolsOf(20, onV3, 0.5, 10), v3Fails(1), onV3)
      expect({ onV3, verdict: verdict.verdict }).toMatchObject({ verdict: 'alarm' })
      expect(run.windows).toBeLessThan(onV3 < 4 ? 100 : 30)
    }
  })

  it('say what V3 did since it has been worse, however long it was well before', () => {
    const before = runUntilAlarm(schoolsOf(20, 4, 0.5, 10), quiet, 1, { windows: 3_000 }).run
    const { verdict } = runUntilAlarm(schoolsOf(20, 4, 0.5, 10), v3Fails(1), 2, { after: before })
    const text = verdict.verdict === 'alarm' ? describeAlarm(verdict.figures) : ''
    expect(text).toMatch(
      /^V3 does worse than V2 at the same time: (\d+) of \1 counted writes on V3 were bad \(\1 of unknown outcome\), \d of \d\d on V2\.$/,
    )
  })

  it('are inconclusive with no or few trials, however long that lasts', () => {
    expect(judge(noEvidence).verdict).toBe('inconclusive')
    const rare = simulate(
      schoolsOf(20, 4, 0.002, 30),
      quiet,
      createRandom(1),
      ({ windows }) => windows >= 4_000,
    )
    expect(judge(rare.evidence).verdict).toBe('inconclusive')
    const onlyV2 = simulate(
      schoolsOf(20, 0, 0.5, 30),
      quiet,
      createRandom(1),
      ({ windows }) => windows >= 1_000,
    )
    expect(judge(onlyV2.evidence).verdict).toBe('inconclusive')
    const enough = simulate(schoolsOf(20, 4, 0.5, 1), quiet, createRandom(1), ({ windows }) => windows >= 500)
    expect(judge(enough.evidence).verdict).toBe('ok')
    expect(judge(atRevision(enough.evidence, 7)).verdict).toBe('inconclusive')
  })

  it('raise no alarm where V2 is worse, whatever is bad about either', () => {
    const worse = (v2: Record<string, number>, v3: Record<string, number>): GuardVerdict =>
      runUntilAlarm(schoolsOf(20, 8, 0.5, 10), ({ side }) => (side === 'v2' ? v2 : v3), 3, { windows: 800 })
        .verdict
    expect(worse({ unknown: 0.05 }, { unknown: 0.0005 }).verdict).toBe('ok')
    expect(worse({ serverError: 0.3 }, { refused: 0.1 }).verdict).toBe('ok')
    expect(worse({ serverError: 0.0005 }, { refused: 0.1 }).verdict).toBe('alarm')
  })

  it('say nothing where there is no V2 at the same time', () => {
    const { verdict } = runUntilAlarm(schoolsOf(20, 20, 0.5, 10), () => ({ unknown: 0.5 }), 1, {
      windows: 1_000,
    })
    expect(verdict.verdict).toBe('inconclusive')
  })

  it('see a V3 that became slow', () => {
    const windowOf = (v3: 'good' | 'slow') => ({
      endMs: 10_000,
      trials: Array.from({ length: 20 }, (_, unit) =>
        unit < 5
          ? ({ unit: `${unit}`, side: 'v3', stratum: 1, outcome: v3 } as const)
          : ({ unit: `${unit}`, side: 'v2', stratum: 1, outcome: 'good' } as const),
      ),
    })
    let evidence = noEvidence
    for (let time = 0; time < 500; time++) evidence = addWindow(evidence, windowOf('good'))
    expect(judge(evidence).verdict).toBe('ok')
    for (let time = 0; time < 10; time++) evidence = addWindow(evidence, windowOf('slow'))
    expect(judge(evidence).verdict).toBe('alarm')
  })

  it('add the windows of several instances and survive restarts between any two of them', () => {
    const schools = schoolsOf(20, 4, 0.5, 10)
    let stored = formatEvidence(noEvidence)
    let [windows, verdict]: [number, GuardVerdict] = [0, judge(noEvidence)]
    while (verdict.verdict !== 'alarm' && windows < 500) {
      // Each window is seen by another instance, which knows nothing but what is stored.
      const one = simulate(
        schools,
        v3Fails(0.05),
        createRandom(windows),
        (run) => run.windows > windows,
        parseEvidence(stored),
        windows,
      )
      stored = formatEvidence(one.evidence)
      expect(stored.length).toBeLessThan(60_000)
      verdict = judge(one.evidence)
      windows += 1
    }
    expect(verdict.verdict).toBe('alarm')
    expect(windows).toBeLessThan(100)
  })
})

describe('after an action', () => {
  const failing = runUntilAlarm(schoolsOf(20, 4, 0.5, 10), v3Fails(0.5), 1).run.evidence

  it('the evidence begins anew: a V3 that was mended raises no alarm, one that fails again does', () => {
    const mended = afterAct(failing, 5)
    expect(judge(mended).verdict).not.toBe('alarm')
    const after = { evidence: mended, v3Records: 0, windows: 1_000 }
    const schools = schoolsOf(20, 4, 0.5, 10)
    expect(runUntilAlarm(schools, quiet, 1, { windows: 1_000, after }).verdict.verdict).toBe('ok')
    expect(runUntilAlarm(schools, v3Fails(0.5), 1, { after }).verdict.verdict).toBe('alarm')
  })

  it('and at another stage or share it does too, with a smaller part of alpha each time', () => {
    expect(atRevision(failing, failing.revision)).toBe(failing)
    const other = atRevision(failing, 7)
    expect(other).toEqual({ ...noEvidence, revision: 7, episode: 2 })
    expect(judge(other).verdict).toBe('inconclusive')
    // Nothing was judged there.
    expect(atRevision(other, 8).episode).toBe(2)
  })
})

/** Why the test is as it is: each of these breaks a simpler one. */
describe('what a simpler test would take for a fault', () => {
  const naive = (
    schools: number,
    windows: number,
    tolerated: number,
    badOf: (random: () => number, onV3: boolean) => number[],
  ): number => {
    const random = createRandom(5)
    let [log, highest] = [0, 0]
    for (let window = 0; window < windows; window++) {
      let [trials, bad, controlTrials, controlBad] = [0, 0, 0, 0]
      for (let school = 0; school < schools; school++) {
        const outcomes = badOf(random, school < schools / 5)
        const badOnes = outcomes.reduce((sum, outcome) => sum + outcome, 0)
        if (school < schools / 5) [trials, bad] = [trials + outcomes.length, bad + badOnes]
        else [controlTrials, controlBad] = [controlTrials + outcomes.length, controlBad + badOnes]
      }
      log =
        Math.max(0, log) +
        logOddsEvidence({ trials, bad, controlTrials, controlBad }, 3 * tolerated, tolerated)
      highest = Math.max(highest, log)
    }
    return highest
  }

  it('schools that differ a little, for ever: without a tolerated ratio of odds', () => {
    const differ = (random: () => number, onV3: boolean): number[] => [
      random() < (onV3 ? 0.035 : 0.02) ? 1 : 0,
    ]
    expect(naive(20, 30_000, 1, differ)).toBeGreaterThan(Math.log(10_000_000))
    const schools = schoolsOf(20, 4, 1, 1)
    const { verdict } = runUntilAlarm(schools, ({ side }) => ({ unknown: side === 'v3' ? 0.035 : 0.02 }), 5, {
      windows: 5_000,
    })
    expect(verdict.verdict).toBe('ok')
  })

  it('a second without service while one school sends its registers: with a trial for each batch', () => {
    // In each window one school is hit, on either side; it sends 10 batches at once.
    const hit = (random: () => number): number[] => Array<number>(10).fill(random() < 0.01 ? 1 : 0)
    expect(naive(20, 2_000, 2, hit)).toBeGreaterThan(Math.log(10_000_000))
    const outages: BadShare = (_, nowMs) => ({ unknown: nowMs % 10_000 < 300 ? 1 : 0 })
    const { verdict } = runUntilAlarm(schoolsOf(20, 4, 10, 1), outages, 5, { windows: 3_000 })
    expect(verdict.verdict).toBe('ok')
  })
})
