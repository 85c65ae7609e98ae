import { describe, expect, it } from 'vitest'

import { addWindow } from '../../../src/rollout/guards/add-window.ts'
import {
  afterAct,
  atRevision,
  type Evidence,
  evidenceOf,
  noEvidence,
} from '../../../src/rollout/guards/evidence.ts'
import { formatEvidence, parseEvidence } from '../../../src/rollout/guards/evidence-note.ts'
import { type GuardSettings, type GuardVerdict, judge } from '../../../src/rollout/guards/judge.ts'
import { logOddsEvidence } from '../../../src/rollout/guards/odds-ratio.ts'
import { runWithoutFault } from './no-fault.ts'
import {
  type BadShare,
  createRandom,
  simulate,
  type Simulated,
  type SimulatedSchool,
  WINDOW_MS,
} from './simulate.ts'

const settings: GuardSettings = { action: 'back', coolDownMs: 900_000 }

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
  const verdictOf = (run: Simulated): GuardVerdict => judge(run.evidence, settings, run.windows * WINDOW_MS)
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
      { name: '20 schools, 20 % on V3, registers of 30', schools: schoolsOf(20, 4, 0.3, 30), bound: 3_000 },
      {
        name: '200 schools, 10 % on V3, registers of 30',
        schools: schoolsOf(200, 20, 0.3, 30),
        bound: 2_000,
      },
      { name: '20 schools, 50 % on V3, single records', schools: schoolsOf(20, 10, 0.3, 1), bound: 4_000 },
      { name: '20 schools, 80 % on V3, registers of 5', schools: schoolsOf(20, 16, 0.3, 5), bound: 10_000 },
    ]
    for (const { name, schools, bound } of rows) {
      const records = [0, 30, 300, 1_000, 1_000, 1_000, 3_000].map((quietWindows, seed) => {
        const before = runUntilAlarm(schools, quiet, 100 + seed, { windows: quietWindows }).run
        const { verdict, run } = runUntilAlarm(schools, v3Fails(0.05), 200 + seed, { after: before })
        expect(verdict).toMatchObject({ verdict: 'alarm', kind: 'unknown', test: 'control', action: 'back' })
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

  it('hold and name a single broken school; its partner does not go back', () => {
    for (const [seed, onV3] of [
      [1, 4],
      [2, 10],
      [3, 19],
      [4, 20],
      [5, 1],
    ] as const) {
      const schools = schoolsOf(20, onV3, 0.5, 10)
      const badShare: BadShare = ({ name }) => ({ unknown: name === 'school 0' ? 1 : 0.0005 })
      const { verdict, run } = runUntilAlarm(schools, badShare, seed)
      expect(verdict).toMatchObject({
        verdict: 'alarm',
        action: 'hold',
        test: 'units',
        unit: 'school 0',
        heldBecause: 'singleUnit',
      })
      expect(run.windows).toBeLessThan(150)
      const later = simulate(schools, badShare, createRandom(seed), ({ windows }) => windows >= 2_000)
      expect(judge(later.evidence, settings, later.windows * WINDOW_MS)).toMatchObject({
        action: 'hold',
        unit: 'school 0',
      })
    }
  })

  it('find the broken school among hundreds of which many have bad outcomes now and then', () => {
    const schools = schoolsOf(300, 150, 0.5, 1)
    const badShare: BadShare = ({ name }) => ({ refused: 0.03, unknown: name === 'school 77' ? 1 : 0.002 })
    const before = runUntilAlarm(schools, () => ({ refused: 0.03, unknown: 0.002 }), 1, { windows: 300 })
    expect(before.verdict.verdict).toBe('ok')
    const { verdict, run } = runUntilAlarm(schools, badShare, 2, { windows: 300, after: before.run })
    expect(verdict).toMatchObject({ verdict: 'alarm', action: 'hold', unit: 'school 77' })
    expect(run.windows - 300).toBeLessThan(100)
  })

  it('go back for a V3 that fails for all its schools, before they name one of them', () => {
    for (const onV3 of [2, 4, 10, 16]) {
      const { verdict, run } = runUntilAlarm(schoolsOf(20, onV3, 0.5, 10), v3Fails(1), onV3)
      expect({ onV3, ...verdict }).toMatchObject({ test: 'control', action: 'back' })
      expect(run.windows).toBeLessThan(60)
    }
  })

  it('are inconclusive with no or few trials, however long that lasts', () => {
    expect(judge(noEvidence, settings, 0).verdict).toBe('inconclusive')
    const rare = simulate(
      schoolsOf(20, 4, 0.002, 30),
      quiet,
      createRandom(1),
      ({ windows }) => windows >= 4_000,
    )
    expect(judge(rare.evidence, settings, 10 ** 12).verdict).toBe('inconclusive')
    const onlyV2 = simulate(
      schoolsOf(20, 0, 0.5, 30),
      quiet,
      createRandom(1),
      ({ windows }) => windows >= 1_000,
    )
    expect(judge(onlyV2.evidence, settings, 0).verdict).toBe('inconclusive')
    const enough = simulate(schoolsOf(20, 4, 0.5, 1), quiet, createRandom(1), ({ windows }) => windows >= 500)
    expect(judge(enough.evidence, settings, 0).verdict).toBe('ok')
    expect(judge(atRevision(enough.evidence, 7), settings, 0).verdict).toBe('inconclusive')
  })

  it('do not go back to a V2 that is worse', () => {
    const worse = (v2: Record<string, number>, v3: Record<string, number>): GuardVerdict =>
      runUntilAlarm(schoolsOf(20, 8, 0.5, 10), ({ side }) => (side === 'v2' ? v2 : v3), 3, { windows: 800 })
        .verdict
    expect(worse({ unknown: 0.05 }, { unknown: 0.0005 }).verdict).toBe('ok')
    expect(worse({ serverError: 0.3 }, { refused: 0.1 })).toMatchObject({
      verdict: 'alarm',
      kind: 'refused',
      action: 'hold',
      heldBecause: 'v2Worse',
    })
    expect(worse({ serverError: 0.0005 }, { refused: 0.1 })).toMatchObject({
      verdict: 'alarm',
      kind: 'refused',
      action: 'back',
      heldBecause: undefined,
    })
  })

  it('only hold where there is no control group', () => {
    const { verdict } = runUntilAlarm(schoolsOf(20, 20, 0.5, 10), () => ({ unknown: 0.05 }), 1)
    expect(verdict).toMatchObject({
      verdict: 'alarm',
      test: 'alone',
      action: 'hold',
      heldBecause: 'noControl',
    })
    expect(
      runUntilAlarm(schoolsOf(20, 20, 0.5, 10), () => ({ unknown: 0.0005 }), 1, { windows: 1_500 }).verdict
        .verdict,
    ).not.toBe('alarm')
  })

  it('see a V3 that became slow', () => {
    const windows = [{ latencyMs: 300 }, { latencyMs: 9_000 }].map(({ latencyMs }) => ({
      endMs: 10_000,
      trials: Array.from({ length: 20 }, (_, unit) => {
        const side = unit < 5 ? ('v3' as const) : ('v2' as const)
        return {
          unit: `${unit}`,
          side,
          stratum: 1,
          bad: { unknown: false, slow: side === 'v3' && latencyMs > 2_000 },
        }
      }),
    }))
    const [fast, slow] = windows
    let evidence = noEvidence
    const add = (window: typeof fast, times: number): void => {
      for (let time = 0; window !== undefined && time < times; time++)
        evidence = addWindow(evidence, window, true)
    }
    add(fast, 500)
    expect(judge(evidence, settings, 0).verdict).toBe('ok')
    add(slow, 10)
    expect(judge(evidence, settings, 0)).toMatchObject({ verdict: 'alarm', kind: 'slow', action: 'back' })
  })

  it('do no more than the configuration allows', () => {
    const { run } = runUntilAlarm(schoolsOf(20, 4, 0.5, 10), v3Fails(0.5), 1)
    const actions = (['back', 'hold', 'notify'] as const).map((action) =>
      judge(run.evidence, { ...settings, action }, 0),
    )
    expect(actions).toMatchObject([{ action: 'back' }, { action: 'hold' }, { action: 'notify' }])
  })

  it('add the windows of several instances and survive restarts between any two of them', () => {
    const schools = schoolsOf(20, 4, 0.5, 10)
    let stored = formatEvidence(noEvidence)
    let [windows, verdict]: [number, GuardVerdict] = [0, judge(noEvidence, settings, 0)]
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
      verdict = judge(one.evidence, settings, 0)
      windows += 1
    }
    expect(verdict).toMatchObject({ verdict: 'alarm', action: 'back' })
    expect(windows).toBeLessThan(100)
  })
})

describe('after an action', () => {
  const failing = runUntilAlarm(schoolsOf(20, 4, 0.5, 10), v3Fails(0.5), 1).run.evidence

  it('none of the same weight follows until the cool-down is over, but a weightier one does', () => {
    const heldFor = (action: 'hold' | 'back'): Evidence => ({
      ...failing,
      lastAct: { action, atMs: 1_000, kind: 'refused', test: 'units', unit: 'school 1' },
    })
    expect(judge(heldFor('back'), settings, 900_999)).toMatchObject({ verdict: 'alarm', action: undefined })
    expect(judge(heldFor('back'), settings, 901_000)).toMatchObject({ verdict: 'alarm', action: 'back' })
    expect(judge(heldFor('hold'), settings, 2_000)).toMatchObject({ verdict: 'alarm', action: 'back' })
  })

  it('the evidence begins anew, with half of alpha used up: a V3 that was mended is not sent back again', () => {
    const mended = afterAct(failing, { action: 'back', atMs: 0, kind: 'unknown', test: 'control' })
    expect(judge(mended, settings, 10 ** 9).verdict).not.toBe('alarm')
    const after = { evidence: mended, v3Records: 0, windows: 1_000 }
    const schools = schoolsOf(20, 4, 0.5, 10)
    expect(runUntilAlarm(schools, quiet, 1, { windows: 500, after }).verdict.verdict).toBe('ok')
    const second = runUntilAlarm(schools, v3Fails(0.5), 1, { after }).verdict
    const first = judge(failing, settings, 0)
    expect(second).toMatchObject({ verdict: 'alarm', action: 'back' })
    const neededOf = (verdict: GuardVerdict): number =>
      verdict.verdict === 'alarm' ? verdict.figures.needed : NaN
    // From 1/2 of its part of alpha to 1/6.
    expect(neededOf(second) - neededOf(first)).toBeCloseTo(0.5, 1)
  })

  it('a hold for one school leaves the evidence about V3 as it is', () => {
    const held = afterAct(failing, {
      action: 'hold',
      atMs: 0,
      kind: 'unknown',
      test: 'units',
      unit: 'school 1',
    })
    expect(evidenceOf(held, 'unknown').control).toEqual(evidenceOf(failing, 'unknown').control)
    expect(evidenceOf(held, 'unknown').units.units.has('school 1')).toBe(false)
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
