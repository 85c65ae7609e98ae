import { describe, expect, it } from 'vitest'

import { backOf, judgeStep, nextOf, stages, type StageSetting } from '../../src/rollout/stage.ts'

const at = (stage: StageSetting['stage'], given: Partial<StageSetting> = {}): StageSetting => {
  return { stage, percent: 0, always: [], never: [], ...given }
}

describe('a step', () => {
  it('goes forward one stage at a time, and back to any', () => {
    for (const [from, one] of stages.entries()) {
      for (const [to, other] of stages.entries()) {
        const { direction, error } = judgeStep(at(one), at(other))
        expect([one, other, direction]).toEqual([
          one,
          other,
          to > from ? 'forward' : to < from ? 'back' : 'none',
        ])
        expect([one, other, error !== undefined]).toEqual([one, other, to > from + 1])
      }
    }
  })

  it('says which stage comes next', () => {
    expect(judgeStep(at('legacy'), at('canary')).error).toBe(
      'Forward goes one stage at a time: after legacy comes shadow, not canary.',
    )
    expect(stages.map((stage) => nextOf(stage))).toEqual(['shadow', 'canary', 'v3', 'complete', undefined])
    expect(stages.map(backOf)).toEqual(['legacy', 'legacy', 'shadow', 'shadow', 'shadow'])
  })

  it.each([
    ['a larger share', { percent: 10 }, { percent: 11 }, 'forward'],
    ['a smaller share', { percent: 10 }, { percent: 9 }, 'back'],
    ['a unit that always goes to V3', {}, { always: ['a'] }, 'forward'],
    ['a unit that does no longer', { always: ['a', 'b'] }, { always: ['b'] }, 'back'],
    ['a unit that never goes to V3', {}, { never: ['a'] }, 'back'],
    ['a unit that may again', { never: ['a'] }, {}, 'forward'],
    ['lists in another order', { always: ['a', 'b'] }, { always: ['b', 'a'] }, 'none'],
    ['a smaller share, and a unit more', { percent: 10 }, { percent: 5, always: ['a'] }, 'forward'],
    ['a larger share, and a unit less', { percent: 5 }, { percent: 10, never: ['a'] }, 'forward'],
  ] as const)('at canary: %s', (_name, from, to, direction) => {
    expect(judgeStep(at('canary', from), at('canary', to))).toEqual({ direction })
  })

  it.each([-1, 100.5, NaN, Infinity])('refuses %s percent', (percent) => {
    expect(judgeStep(at('shadow'), at('canary', { percent })).error).toBe(
      'The percentage must be between 0 and 100.',
    )
  })
})
