import { describe, expect, it } from 'vitest'

import { createOwnRules } from '../../src/compare/diff/index.ts'
import { countsForm, createTally, type RunHeader, type Tally, toDocument } from '../../src/compare/tally.ts'
import type { Comparison, FieldDifference, Verdict } from '../../src/compare/verdict.ts'

const header: RunHeader = {
  run: 'r1',
  kind: 'reads',
  partner: null,
  startedAt: '2026-03-02T00:00:00Z',
  endedAt: '2026-03-02T00:01:00Z',
  from: '2026-01-01',
  to: '2026-01-31',
  complete: true,
  noise: false,
}
const documentOf = (tally: Tally, more: Partial<RunHeader> = {}) =>
  toDocument({ ...header, ...more }, tally.counts())
const plain = (verdict: Verdict): Comparison => ({ verdict, differences: [], equivalences: [] })
const differing = (...differences: FieldDifference[]): Comparison => ({ ...plain('differs'), differences })
const comment: FieldDifference = {
  path: 'Comment',
  kind: 'value',
  v2Class: 'length:10-20',
  v3Class: 'length:1-9 cut',
}
const minutes: FieldDifference = { path: 'MinutesLate', kind: 'null', v2Class: 'number:0', v3Class: 'null' }

describe('createTally', () => {
  it('adds up records by verdict, class, kind, code and day', () => {
    const tally = createTally()
    tally.add(differing(comment), { kind: 'marks', day: '2026-01-02', codeClass: 'code:present' })
    tally.add(differing(comment, minutes), { kind: 'marks', day: '2026-01-01' })
    tally.add(
      { ...plain('equivalent'), equivalences: [{ rule: 'guid-case', path: 'Learner' }] },
      { kind: 'marks' },
    )
    tally.add(plain('unknown'), { kind: 'registrations' })
    tally.count('dropped', 2)
    tally.count('skipped', 3)
    const document = documentOf(tally)
    expect(document).toMatchObject({
      offered: 9,
      compared: 4,
      verdicts: { same: 0, equivalent: 1, differs: 2, onlyV2: 0, onlyV3: 0, unknown: 1 },
      differences: [
        { ...comment, count: 2 },
        { ...minutes, count: 1 },
      ],
      equivalences: [{ rule: 'guid-case', path: 'Learner', count: 1 }],
      delays: [],
    })
    expect(document.days.map(({ name }) => name)).toEqual(['2026-01-01', '2026-01-02'])
    expect(document.kinds.map(({ name, verdicts }) => [name, verdicts.differs])).toEqual([
      ['marks', 2],
      ['registrations', 0],
    ])
  })

  it('goes on from a checkpoint with the same document', () => {
    const [whole, first, second] = [createTally(), createTally(), createTally()]
    const groups = { kind: 'marks', day: '2026-01-02', codeClass: 'code:present' }
    for (const tally of [whole, first]) {
      tally.add(differing(comment, minutes), groups)
      tally.addNoise(differing(minutes))
      tally.count('dropped', 1)
    }
    for (const tally of [whole, second]) {
      tally.add(differing(minutes), groups)
      tally.add(plain('onlyV2'), groups)
      tally.addNoise(plain('onlyV3'))
      tally.addNoise(plain('same'))
      tally.count('skipped', 5)
      tally.count('askedAgain', 2)
    }
    const resumed = createTally()
    for (const tally of [second, first])
      resumed.merge(countsForm.parse(JSON.parse(JSON.stringify(tally.counts()))))
    expect(documentOf(resumed)).toEqual(documentOf(whole))
    expect(documentOf(resumed, { noise: true }).noise).toEqual({
      measured: true,
      records: 2,
      differences: [
        { path: '(row)', kind: 'extra', count: 1 },
        { path: 'MinutesLate', kind: 'null', count: 1 },
      ],
    })
  })

  it('says what the rules of a partner did, expired ones too', () => {
    const rule = { reason: 'known', owner: 'ops', path: 'Comment', when: {} }
    const { all } = createOwnRules(
      [
        { ...rule, name: 'old', expires: '2026-01-01' },
        { ...rule, name: 'valid', expires: '2026-01-02' },
      ],
      '2026-01-02',
    )
    const tally = createTally()
    tally.add(
      { ...plain('equivalent'), equivalences: [{ rule: 'valid', path: 'Comment' }] },
      { kind: 'marks' },
    )
    tally.add({ ...differing(comment), expiredRules: ['old'] }, { kind: 'marks' })
    expect(
      documentOf(tally, { rules: all }).ownRules.map(({ name, expired, count }) => ({
        name,
        expired,
        count,
      })),
    ).toEqual([
      { name: 'old', expired: true, count: 1 },
      { name: 'valid', expired: false, count: 1 },
    ])
  })

  it('keeps a bounded number of classes and loses no count', () => {
    const tally = createTally()
    const days = Array.from({ length: 6_000 }, (_, at) =>
      new Date(at * 86_400_000).toISOString().slice(0, 10),
    )
    for (const day of days) {
      tally.add(differing({ ...comment, path: `Comment/${day}` }), { kind: day, day, codeClass: day })
    }
    const { differences, kinds, days: grouped, compared } = documentOf(tally)
    expect(differences.length).toBe(1_001)
    expect(differences[0]).toEqual({
      path: '(other)',
      kind: 'value',
      v2Class: '(other)',
      v3Class: '(other)',
      count: 5_000,
    })
    // One more has all others.
    expect([kinds.length, grouped.length, compared]).toEqual([1_001, 6_000, 6_000])
    expect(JSON.stringify(tally.counts()).length).toBeLessThan(1_000_000)
  })

  it('refuses counts that are none', () => {
    for (const damaged of [
      null,
      {},
      [['verdict', ['marks', 'same'], -1]],
      [['else', [], 1]],
      [['noise', 'x', 1]],
    ])
      expect(countsForm.safeParse(damaged).success).toBe(false)
  })
})
