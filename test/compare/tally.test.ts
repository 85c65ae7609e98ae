import { describe, expect, it } from 'vitest'

import { createTally, type RunHeader, type Tally, toDocument } from '../../src/compare/tally.ts'
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
  it('builds from the merged counts of two halves of a run the same document as from the whole run', () => {
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
    const merged = createTally()
    for (const tally of [second, first]) merged.merge(tally.counts())
    expect(documentOf(merged)).toEqual(documentOf(whole))
    expect(documentOf(merged, { noise: true }).noise).toEqual({
      measured: true,
      records: 2,
      differences: [
        { path: '(row)', kind: 'extra', count: 1 },
        { path: 'MinutesLate', kind: 'null', count: 1 },
      ],
    })
  })

  it('stores at most a thousand classes of differences, and adds up all further classes as (other)', () => {
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
    // One more than a thousand, because the class `(other)` holds all further counts.
    expect([kinds.length, grouped.length, compared]).toEqual([1_001, 6_000, 6_000])
    expect(JSON.stringify(tally.counts()).length).toBeLessThan(1_000_000)
  })
})
