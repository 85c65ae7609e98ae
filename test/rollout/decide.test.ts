import fc from 'fast-check'
import { describe, expect, it } from 'vitest'

import { decide, positionOf } from '../../src/rollout/decide.ts'
import { type RequestKind, requestKinds, type StageSetting, stages } from '../../src/rollout/stage.ts'

const secret = Buffer.from('synthetic secret of this test')
const settingOf = (percent: number, lists: Partial<StageSetting> = {}): StageSetting => ({
  stage: 'canary',
  percent,
  always: [],
  never: [],
  ...lists,
})
const sideOf = (setting: StageSetting, kind: RequestKind, unit: string) =>
  decide(setting, 'acme', { kind, unit }, () => secret)

describe('decide', () => {
  it('sends V2 requests to V2 before stage v3 and to V3 from stage v3 on, and requests with V3 paths always to V3', () => {
    for (const stage of stages) {
      if (stage === 'canary') continue
      for (const kind of requestKinds) {
        const expected = kind === 'v3Path' || stage === 'v3' || stage === 'complete' ? 'v3' : 'v2'
        expect([stage, kind, sideOf({ ...settingOf(50), stage }, kind, 'school')]).toEqual([
          stage,
          kind,
          expected,
        ])
      }
    }
    expect(sideOf(settingOf(0), 'v3Path', 'school')).toBe('v3')
  })

  it('moves units to V3 in a fixed order at canary, so that no higher percentage moves a unit back to V2', () => {
    const units = Array.from({ length: 200 }, (_, index) => `school ${index}`)
    const all = Array.from({ length: 101 }, (_, percent) =>
      units.filter((unit) => sideOf(settingOf(percent), 'batch', unit) === 'v3'),
    )
    const served = (percent: number): readonly string[] => all[percent] ?? []
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 100 }), fc.integer({ min: 0, max: 100 }), (one, other) => {
        const fewer = served(Math.min(one, other))
        const more = new Set(served(Math.max(one, other)))
        expect(fewer.every((name) => more.has(name))).toBe(true)
      }),
    )
    expect([served(0).length, served(100).length]).toEqual([0, 200])
    expect(served(20).length).toBeGreaterThan(25)
    expect(served(20).length).toBeLessThan(60)
  })

  it('gives the never list precedence over the always list, and both lists precedence over the percentage', () => {
    const lists = { always: ['a', 'b'], never: ['b', 'c'] }
    const sides = (percent: number) =>
      ['a', 'b', 'c'].map((name) => sideOf(settingOf(percent, lists), 'batch', name))
    expect(sides(0)).toEqual(['v3', 'v2', 'v2'])
    expect(sides(100)).toEqual(['v3', 'v2', 'v2'])
  })

  it('derives the side of a unit from the secret and the partner, so that no client can choose its side', () => {
    const places = [positionOf(secret, 'acme', 'x'), positionOf(secret, 'other', 'x')]
    expect(new Set([...places, positionOf(Buffer.from('another secret'), 'acme', 'x')]).size).toBe(3)
  })

  it('returns undefined at canary without the secret that divides the units, but needs no secret at other stages', () => {
    const without = (stage: StageSetting['stage']) =>
      decide({ ...settingOf(50), stage }, 'acme', { kind: 'batch', unit: 'x' }, () => undefined)
    expect(stages.map(without)).toEqual(['v2', 'v2', undefined, 'v3', 'v3'])
  })
})
