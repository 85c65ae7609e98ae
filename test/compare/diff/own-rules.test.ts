import { describe, expect, it } from 'vitest'

import { compareMark } from '../../../src/compare/diff/compare-mark.ts'
import { createOwnRules, type RuleCondition } from '../../../src/compare/diff/findings.ts'
import { markRow } from './mark-rows.ts'

const rule = (path: string, when: RuleCondition, expires = '2026-12-31') => ({
  name: 'known',
  reason: 'V3 does so by contract',
  owner: 'ops',
  expires,
  path,
  when,
})

function verdictOf(path: string, when: RuleCondition, v2: unknown, v3: unknown): string {
  const rules = createOwnRules([rule(path, when)], '2026-11-22')
  return compareMark(markRow(1, { [path]: v2 }), markRow(1, { [path]: v3 }), { rules }).verdict
}

describe('createOwnRules', () => {
  it.each<readonly [string, RuleCondition, unknown, unknown]>([
    ['Comment', { v3Class: '* trimmed' }, ' dentist ', 'dentist'],
    ['Comment', { v3Class: 'length:*case' }, 'Dentist', 'dentist'],
    ['Comment', { v2Class: 'length:1-9', v3Class: '* cut' }, 'dentist', 'dent'],
    ['Comment', { v2Class: 'length:0' }, '', null],
    ['Comment', { v3Class: 'length:*' }, 'dentist', 'ill'],
    ['MinutesLate', { v2Class: 'null', v3Class: 'number:0' }, null, 0],
    ['RecordedOn', { v3Class: 'time:*<1s' }, '2026-03-02T09:05:11Z', '2026-03-02T10:05:11.5+01:00'],
    ['RecordedOn', { v3Class: 'time:+3600s' }, '2026-03-02T09:05:11Z', '2026-03-02T10:05:11Z'],
  ])('accepts a difference in %s that matches the condition %o', (path, when, v2, v3) => {
    expect(verdictOf(path, when, v2, v3)).toBe('equivalent')
  })

  it.each<readonly [string, RuleCondition, unknown, unknown]>([
    ['Comment', { v3Class: '* trimmed' }, ' dentist ', 'Dentist'],
    ['Comment', { v3Class: '* cut' }, 'dentist', 'ill'],
    ['Comment', { v3Class: '* trimmed' }, 'dentist', null],
    ['Comment', { v2Class: 'length:10-20' }, 'dentist', 'ill'],
    ['Comment', { v2Class: 'length:1-9', v3Class: 'null' }, 'dentist', 'ill'],
    // The class `number:1-5` has only one `1`, which cannot match the text both before and after the wildcard.
    ['MinutesLate', { v3Class: 'number:1*1-5' }, null, 5],
    ['RecordedOn', { v3Class: 'time:*<1s' }, '2026-03-02T09:05:11Z', '2026-03-02T09:05:12.5Z'],
  ])('does not accept a difference in %s that does not match the condition %o', (path, when, v2, v3) => {
    expect(verdictOf(path, when, v2, v3)).toBe('differs')
  })

  it('applies a rule to its own path only', () => {
    const rules = createOwnRules([rule('ChangeProcessName', { v3Class: '*' })], '2026-11-22')
    const v3 = markRow(1, { ChangeProcessName: 'Markbridge', MinutesLate: 3 })
    const { verdict, differences, equivalences } = compareMark(markRow(1), v3, { rules })
    expect([verdict, differences.map(({ path }) => path), equivalences]).toEqual([
      'differs',
      ['MinutesLate'],
      [{ rule: 'known', path: 'ChangeProcessName' }],
    ])
  })

  it.each([
    ['applies a rule on its last day', '2026-11-22', 'equivalent', undefined],
    ['ignores a rule after its last day', '2026-11-21', 'differs', ['known']],
  ])('%s', (_, expires, verdict, expiredRules) => {
    const rules = createOwnRules([rule('MinutesLate', { v3Class: 'number:0' }, expires)], '2026-11-22')
    const found = compareMark(markRow(1), markRow(1, { MinutesLate: 0 }), { rules })
    expect([found.verdict, found.expiredRules]).toEqual([verdict, expiredRules])
  })

  it('prefers an active rule to an expired rule if both match', () => {
    const when = { v2Class: 'null' }
    const both = [{ ...rule('Comment', when, '2020-01-01'), name: 'old' }, rule('Comment', when)]
    const found = compareMark(markRow(1), markRow(1, { Comment: '' }), {
      rules: createOwnRules(both, '2026-11-22'),
    })
    expect([found.verdict, found.equivalences, found.expiredRules]).toEqual([
      'equivalent',
      [{ rule: 'known', path: 'Comment' }],
      undefined,
    ])
  })
})
