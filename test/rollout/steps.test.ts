import { describe, expect, it } from 'vitest'

import { backOf, judgeStep, nextOf, stages, type StageSetting } from '../../src/rollout/stage.ts'

const at = (stage: StageSetting['stage'], given: Partial<StageSetting> = {}): StageSetting => {
  return { stage, percent: 0, always: [], never: [], ...given }
}

describe('judgeStep', () => {
  it('allows a step to the next stage, and a step back to any earlier stage', () => {
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

  it('refuses a step that skips a stage, and names both stages', () => {
    expect(judgeStep(at('legacy'), at('canary')).error).toMatch(/canary.*legacy/)
    expect(stages.map((stage) => nextOf(stage))).toEqual(['shadow', 'canary', 'v3', 'complete', undefined])
    expect(stages.map(backOf)).toEqual(['legacy', 'legacy', 'shadow', 'shadow', 'shadow'])
  })

  it.each([
    ['a higher percentage', { percent: 10 }, { percent: 11 }, 'forward'],
    ['a lower percentage', { percent: 10 }, { percent: 9 }, 'back'],
    ['a unit added to the always list', {}, { always: ['a'] }, 'forward'],
    ['a unit removed from the always list', { always: ['a', 'b'] }, { always: ['b'] }, 'back'],
    ['a unit added to the never list', {}, { never: ['a'] }, 'back'],
    ['a unit removed from the never list', { never: ['a'] }, {}, 'forward'],
    ['the same lists in another order', { always: ['a', 'b'] }, { always: ['b', 'a'] }, 'none'],
    ['a lower percentage with a unit added to the always list', { percent: 10 }, { percent: 5, always: ['a'] }, 'forward'],
    ['a higher percentage with a unit added to the never list', { percent: 5 }, { percent: 10, never: ['a'] }, 'forward'],
  ] as const)('returns the direction "$3" for %s at canary', (_name, from, to, direction) => {
    expect(judgeStep(at('canary', from), at('canary', to))).toEqual({ direction })
  }) // prettier-ignore

  it.each([-1, 100.5, NaN, Infinity])('refuses a percentage of %s', (percent) => {
    expect(judgeStep(at('shadow'), at('canary', { percent })).error).toContain('percentage')
  })
})
