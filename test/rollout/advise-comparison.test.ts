import { describe, expect, it } from 'vitest'

import {
  type ComparisonFigures,
  comparisonObstacles,
  type ComparisonThresholds,
  neededCheck,
  schoolsFor,
} from '../../src/rollout/advise-comparison.ts'
import { type Stage, stages } from '../../src/rollout/stage.ts'

const thresholds: ComparisonThresholds = {
  limit: 0.005,
  confidence: 0.95,
  comparedShare: 0.9,
  schoolShare: 0.2,
  days: 5,
  traits: ['late', 'comment', 'correction'],
}

const enough: ComparisonFigures = {
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
  codes: ['a', 'b'],
  codesNotCompared: [],
  traits: ['late', 'comment', 'correction'],
  errorsNotCompared: [],
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

const obstaclesOf = (given: Partial<ComparisonFigures>, target: Stage = 'canary', seenCodes = ['a', 'b']) =>
  comparisonObstacles({ ...enough, ...given }, thresholds, { target, seenCodes, restart: 'restart' })

describe('what comparison has against a step', () => {
  it('is nothing where enough was compared', () => {
    expect(obstaclesOf({})).toEqual([])
  })

  it.each<[string, Partial<ComparisonFigures>, ReturnType<typeof obstaclesOf>]>([
    ['no comparison', nothing, [['inconclusive', 'Nothing was compared with V2 (0 of 598 learners and days, 0 of 5 days).']]],
    ['no read-back', { ...nothing, check: 'readBack' }, [['not yet', 'Nothing that V3 served has been read back on V2 (0 of 598 learners and days, 0 of 5 days): partners[].check.v2 is the percentage that is.']]],
    ['a sample with holes', { comparedShare: 0.89994 }, [['not yet', 'Only 89.99 % of the sample were compared, and 90 % are needed: markbridge_compare_dropped_total and markbridge_compare_skipped_total say why; where there was no time for more, lower partners[].compare.percent.']]],
    ['too few', { countedPairs: 100, pairs: 100, bound: 0.0295 }, [['inconclusive', '100 of 598 learners and days were compared with V2.']]],
    ['one large school', { countedPairs: 25, bound: 0.113 }, [['inconclusive', '25 of 598 learners and days were compared with V2.'], ['inconclusive', '2000 were compared with V2 in 9 schools, of which 25 count: one school may make up 20 % of them (rollout.evidence.schoolShare).']]],
    ['two schools', { countedPairs: 0, schools: 2, bound: 1 }, [['inconclusive', '0 of 598 learners and days were compared with V2.'], ['inconclusive', '2000 were compared with V2 in 2 schools, of which 0 count: one school may make up 20 % of them. Where the partner has no more schools, set rollout.evidence.schoolShare: 0.5.']]],
    ['one school', { countedPairs: 0, schools: 1, bound: 1 }, [['inconclusive', '0 of 598 learners and days were compared with V2.'], ['inconclusive', '2000 were compared with V2 in 1 school, of which 0 count: one school may make up 20 % of them. Where the partner has no more schools, set rollout.evidence.schoolShare: 1.']]],
    ['differences', { differing: 4, bound: 0.0061, neededPairs: 1_830 }, [['not yet', '4 learners and days differ, with 1500 that count: up to 0.61 % of all may (95 % confidence), and the limit is 0.5 %. 1830 would have to count if no other differs. Once the cause is mended, restart begins the evidence anew.'], ['inconclusive', '2000 were compared with V2 in 9 schools, of which 1500 count: one school may make up 20 % of them (rollout.evidence.schoolShare).']]],
    ['few enough differences', { differing: 1, bound: 0.0032 }, []],
    ['few days', { days: 4, check: 'readBack' }, [['inconclusive', 'Replies were read back on V2 on 4 of 5 days.']]],
    ['a code that was only seen', { codes: ['a'] }, [['inconclusive', '1 of the 2 attendance codes that were seen were never compared.']]],
    ['a code that could not be compared', { codesNotCompared: ['c'] }, [['inconclusive', '1 of the 3 attendance codes that were seen were never compared.']]],
    ['missing traits', { traits: ['late'] }, [['inconclusive', 'No compared record had a comment (rollout.evidence.traits).'], ['inconclusive', 'No compared record corrected an earlier one (rollout.evidence.traits).']]],
    ['errors', { errorsNotCompared: ['ATT_VAL_2', 'ATT_VAL_3'] }, [['inconclusive', 'Errors that V2 answered with and that were never compared: ATT_VAL_2, ATT_VAL_3.']]],
    ['damaged evidence', { damaged: true }, [['not yet', 'The evidence of comparison in the journal is damaged; restart begins it anew.']]],
    ['a full table', { full: true, bound: 0.006, differing: 250, neededPairs: 55_000 }, [['not yet', expect.stringContaining('250 learners and days differ')], ['inconclusive', expect.stringContaining('1500 count')], ['not yet', 'No more learners and days are kept at this stage and share; restart begins anew.']]],
  ])('is named: %s', (_, given, expected) => {
    expect(obstaclesOf(given)).toEqual(expected)
  }) // prettier-ignore

  it('is only what differs before complete, where V2 may be gone', () => {
    expect(obstaclesOf(nothing, 'complete')).toEqual([])
    expect(obstaclesOf({ days: 0, codes: [], traits: [] }, 'complete')).toEqual([])
    expect(obstaclesOf({ differing: 4, bound: 0.0061 }, 'complete')).toHaveLength(1)
  })

  it('takes as many schools as their share needs', () => {
    expect([1, 0.5, 0.34, 1 / 3, 0.2, 0.01].map(schoolsFor)).toEqual([1, 2, 3, 3, 5, 100])
  })

  it('depends on the check of the stage', () => {
    expect(stages.map(neededCheck)).toEqual([undefined, 'reply', 'readBack', 'readBack', undefined])
  })
})
