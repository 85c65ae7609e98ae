import { describe, expect, it } from 'vitest'

import {
  advise,
  type AdviceInput,
  type ComparisonFigures,
  neededCheck,
  nextStep,
} from '../../src/rollout/advise.ts'
import { judge, newGuardState, noRecent } from '../../src/rollout/guards/sequential-test.ts'
import { type Stage, stages } from '../../src/rollout/stage.ts'

const HOUR_MS = 3_600_000
const nowMs = 100 * 24 * HOUR_MS
const guards = judge(newGuardState)
const enough = { records: 5_000, batches: 300, schools: 12, codes: ['/', 'N', 'L', 'I', 'C'] }

/** A partner at `canary` that is ready for the next step. */
const ready: AdviceInput = {
  partner: 'acme',
  setting: { stage: 'canary', percent: 20 },
  target: { stage: 'v3', percent: 100 },
  nowMs,
  stageSinceMs: nowMs - 7 * 24 * HOUR_MS,
  seen: { v2: enough, v3: enough },
  unreadable: 0,
  guards: { kind: 'ok' },
  coolDown: undefined,
  quietUntilMs: -Infinity,
  lost: [],
  credentials: 'accepted',
  load: { peakRecordsPerSecond: 4, callsPerSecond: 5, recordsPerCall: 1 },
  unacknowledged: [],
  pending: false,
  trailFault: undefined,
  comparison: undefined,
  thresholds: {
    ...{ limit: 0.005, confidence: 0.95, schoolShare: 0.2, days: 5 },
  },
}

const has = (text: string): unknown => expect.stringContaining(text)

describe('advise', () => {
  it('returns the verdict "ready", with the figures, if there is enough evidence', () => {
    expect(advise(ready)).toMatchObject({
      verdict: 'ready',
      missing: [],
      figures: {
        daysAtStage: 7,
        records: 5_000,
        batches: 300,
        schools: 12,
        codes: 5,
        codesOnV2Only: [],
        peakRecordsPerSecond: 4,
        allowedRecordsPerSecond: 5,
        comparison: undefined,
      },
    })
  })

  it('returns every condition with its progress, and says whether time or an action can meet the condition', () => {
    const seen = { v2: enough, v3: { ...enough, records: 1_312, batches: 9 } }
    const { conditions } = advise({ ...ready, seen, unreadable: 3 })
    const named = Object.fromEntries(conditions.map(({ name, ...rest }) => [name, rest]))
    expect(named).toMatchObject({
      'distinct records': { state: 'pass', progress: '1,312 of 1,000', sentence: undefined },
      batches: { state: 'waiting', progress: '9 of 100', sentence: has('9 of 100') },
      'readable writes': { state: 'fail', sentence: has('restart-evidence') },
      'credentials accepted by V3': { state: 'pass' },
    })
    expect(conditions.length).toBeGreaterThan(12)
  })

  it.each<[string, Partial<AdviceInput>, string, string]>([
    ['too few records', { seen: { v2: enough, v3: { ...enough, records: 999 } } }, 'inconclusive', '999 of 1,000'],
    ['too few batches', { seen: { v2: enough, v3: { ...enough, batches: 9 } } }, 'inconclusive', '9 of 100'],
    ['too few schools', { seen: { v2: enough, v3: { ...enough, schools: 1 } } }, 'inconclusive', '1 of 3 schools'],
    ['attendance codes that were written on V2 but not on V3', { seen: { v2: { ...enough, codes: ['U', ...enough.codes, 'B'] }, v3: enough } }, 'inconclusive', '2 attendance codes'],
    ['guards with too few writes', { guards }, 'inconclusive', 'guards'],
    ['too few days at the stage', { stageSinceMs: nowMs - 30 * HOUR_MS }, 'not yet', '1.2 of 5 days'],
    ['writes whose bodies could not be read', { unreadable: 3 }, 'not yet', 'rollout set acme canary --restart-evidence'],
    ['a running cool-down', { coolDown: { finding: 'V3 does worse.', untilMs: nowMs + 60_001 } }, 'not yet', 'V3 does worse. No step forward is taken for another 2 min'],
    ['an unrecorded batch', { quietUntilMs: nowMs + 300_000 }, 'not yet', 'another 5 min'],
    ['an instance that has not acknowledged the stage', { unacknowledged: ['b'] }, 'not yet', 'revision: b'],
    ['an instance that does not renew its lease', { lost: [{ instance: 12, host: 'far', pid: 77, leaseUntilMs: nowMs }] }, 'not yet', 'rollout dismiss 12'],
    ['a pending change', { pending: true }, 'not yet', 'pending'],
    ['credentials that V3 has not seen yet', { credentials: 'notTried' }, 'not yet', 'credentials'],
    ['refused credentials', { credentials: 'refused' }, 'blocked', 'credentials'],
    ['a peak beyond what V3 allows', { load: { peakRecordsPerSecond: 12.34, callsPerSecond: 5, recordsPerCall: 1 } }, 'blocked', 'v3.callsPerSecond'],
  ])('returns the verdict "$2" for %s, and names this obstacle in one sentence', (_, change, verdict, sentence) => {
    expect(advise({ ...ready, ...change })).toMatchObject({ verdict, missing: [has(sentence)] })
  }) // prettier-ignore

  it('reports the figures of the guards if their evidence is against V3 or they raised an alarm', () => {
    const figures = {
      v3: { ...noRecent.v3, trials: 40, serverError: 20, slow: 1 },
      v2: { ...noRecent.v2, trials: 100 },
    }
    expect(advise({ ...ready, guards: { kind: 'ok', figures } }).missing).toEqual([
      has('21 of 40 counted writes on V3 were bad (20 not applied, 1 slow), 0 of 100 on V2'),
    ])
    expect(advise({ ...ready, guards: { kind: 'alarm', figures } }).missing).toEqual([has('alarm')])
  })

  it('blocks a step if the peak load needs more calls per second than V3 allows', () => {
    const load = { peakRecordsPerSecond: 40, callsPerSecond: 5, recordsPerCall: 10 }
    expect(advise({ ...ready, load }).verdict).toBe('ready')
    const single = { ...load, recordsPerCall: 1 }
    expect(advise({ ...ready, load: single, target: { stage: 'canary', percent: 10 } }).verdict).toBe('ready')
    expect(advise({ ...ready, load: single, target: { stage: 'canary', percent: 50 } })).toMatchObject({
      verdict: 'blocked',
      missing: [has('20 records per second for 50 %')],
    })
    expect(advise({ ...ready, load: { ...load, callsPerSecond: undefined } }).verdict).toBe('ready')
  })

  it('returns the verdict "inconclusive" without writes, even after a long time at the stage', () => {
    const none = { records: 0, batches: 0, schools: 0, codes: [] }
    for (const stage of ['shadow', 'canary', 'v3'] as const) {
      const input = {
        ...ready,
        setting: { stage, percent: 20 },
        stageSinceMs: 0,
        seen: { v2: none, v3: none },
        guards,
      }
      expect(advise(input).verdict).toBe('inconclusive')
    }
  })

  it('requires writes on V2 for the step from shadow, and no writes for the step from legacy', () => {
    const none = { records: 0, batches: 0, schools: 0, codes: [] }
    const shadow = {
      ...ready,
      setting: { stage: 'shadow', percent: 0 },
      target: { stage: 'canary', percent: 5 },
      guards,
    } as const
    expect(advise({ ...shadow, seen: { v2: enough, v3: none } }).verdict).toBe('ready')
    const legacy = {
      ...shadow,
      setting: { stage: 'legacy', percent: 0 },
      target: { stage: 'shadow', percent: 0 },
    } as const
    expect(
      advise({ ...legacy, seen: { v2: none, v3: none }, credentials: 'refused', stageSinceMs: nowMs })
        .verdict,
    ).toBe('ready')
  })

  it('requires writes of as many schools as 1 / schoolShare, but of at most three', () => {
    const verdictOf = (schools: number, schoolShare: number): string => {
      const thresholds = { ...ready.thresholds, schoolShare }
      return advise({ ...ready, thresholds, seen: { v2: enough, v3: { ...enough, schools } } }).verdict
    }
    const rows = [[1, 1], [1, 0.5], [2, 0.5], [2, 1 / 3], [3, 0.01]] as const // prettier-ignore
    expect(rows.map(([schools, share]) => verdictOf(schools, share))).toEqual([
      'ready',
      'inconclusive',
      'ready',
      'inconclusive',
      'ready',
    ])
  })
})

describe('nextStep', () => {
  it('returns the stage that follows each stage, and undefined for complete', () => {
    const steps = (['legacy', 'shadow', 'canary', 'v3', 'complete'] as const).map(
      (stage) => nextStep({ stage })?.stage,
    )
    expect(steps).toEqual(['shadow', 'canary', 'v3', 'complete', undefined])
  })
})

const compared: ComparisonFigures = {
  check: 'reply',
  sampled: 800,
  comparedShare: 0.97,
  pairs: 2_000,
  countedPairs: 1_500,
  schools: 9,
  differing: 0,
  bound: 0.002,
  neededPairs: 598,
  days: 6,
  codes: ['a', 'b', 'c', 'd'],
  codesNotCompared: [],
  traits: ['late', 'comment', 'correction'],
  codesUnchecked: [],
  unchecked: 0,
  full: false,
  damaged: false,
}

const nothing: Partial<ComparisonFigures> = {
  sampled: 0,
  comparedShare: 0,
  pairs: 0,
  countedPairs: 0,
  schools: 0,
  bound: 1,
  days: 0,
  codes: [],
  traits: [],
}

/** Returns the verdict and the sentences for a step with these comparison figures and no other obstacle. */
function judged(given: Partial<ComparisonFigures>, target: Stage = 'canary'): readonly string[] {
  const seen = { ...enough, codes: ['a', 'b', 'c', 'd'] }
  const { verdict, missing } = advise({
    ...ready,
    setting: { stage: target === 'canary' ? 'shadow' : 'v3', percent: 0 },
    target: { stage: target, percent: 100 },
    seen: { v2: seen, v3: seen },
    comparison: { ...compared, ...given },
  })
  return [verdict, ...missing]
}

describe('advise with comparison', () => {
  it('returns the verdict "ready" if enough records were compared', () => {
    expect(judged({})).toEqual(['ready'])
  })

  it.each<[string, Partial<ComparisonFigures>, unknown[]]>([
    ['no comparisons', nothing, ['inconclusive', has('0 of 598 learner-days, 0 of 5 days')]],
    ['no comparisons of marks that were read back', { ...nothing, check: 'readBack' }, ['not yet', has('partners[].check.v2')]],
    ['a sample that was compared in part', { comparedShare: 0.89994 }, ['not yet', has('89.99 %')]],
    ['too few learner-days', { countedPairs: 100, pairs: 100, bound: 0.0295 }, ['inconclusive', has('100 of 598')]],
    ['one school with most of the pairs', { countedPairs: 25, bound: 0.113 }, ['inconclusive', has('25 of 598'), has('25 count')]],
    ['pairs of two schools', { countedPairs: 0, schools: 2, bound: 1 }, ['inconclusive', has('0 of 598'), has('schoolShare: 0.5')]],
    ['pairs of one school', { countedPairs: 0, schools: 1, bound: 1 }, ['inconclusive', has('0 of 598'), has('schoolShare: 1')]],
    ['too many differences', { differing: 4, bound: 0.0061, neededPairs: 1_830 }, ['inconclusive', has('0.61 %'), has('1,500 count')]],
    ['few enough differences to be ready', { differing: 1, bound: 0.0032 }, ['ready']],
    ['comparisons on too few days', { days: 4, check: 'readBack' }, ['inconclusive', has('4 of 5 days')]],
    ['an attendance code that was written but not compared', { codes: ['a', 'b', 'c'] }, ['inconclusive', has('1 of the 4 attendance codes')]],
    ['an attendance code that could not be compared', { codesNotCompared: ['e'] }, ['inconclusive', has('1 of the 5 attendance codes')]],
    ['no compared record with a comment or a correction', { traits: ['late'] }, ['inconclusive', has('comment'), has('corrected')]],
    ['records that were not checked because V2 refused them', { unchecked: 12 }, ['ready']],
    ['an attendance code whose records V2 always refused', { codes: ['a', 'b', 'c'], codesUnchecked: ['d'] }, ['ready']],
    ['damaged evidence', { damaged: true }, ['not yet', has('damaged')]],
    ['evidence that can store no more pairs', { full: true, bound: 0.006, differing: 250, neededPairs: 55_000 }, ['inconclusive', has('250 learner-days differ'), has('1,500 count'), has('--restart-evidence')]],
  ])('returns the verdict with the unmet conditions for %s', (_, given, expected) => {
    expect(judged(given)).toEqual(expected)
  }) // prettier-ignore

  it('requires no comparisons for the step to the stage complete, but reports too many differences', () => {
    expect(judged(nothing, 'complete')).toEqual(['ready'])
    expect(judged({ days: 0, codes: [], traits: [] }, 'complete')).toEqual(['ready'])
    expect(judged({ differing: 4, bound: 0.0061 }, 'complete')).toHaveLength(2)
  })
})

describe('neededCheck', () => {
  it('returns "reply" at shadow, "readBack" at canary and v3, and undefined at other stages', () => {
    expect(stages.map(neededCheck)).toEqual([undefined, 'reply', 'readBack', 'readBack', undefined])
  })
})
