import { describe, expect, it } from 'vitest'

import { builtInRules } from '../../src/config/partner-schema.ts'
import { parseConfig, warningsOf } from '../../src/config/index.ts'
import { faultsOf, upstreams } from './faults.ts'

const rule = {
  name: 'comments-trimmed',
  reason: 'V3 trims comments',
  owner: 'operations',
  expires: '2026-11-22',
  path: 'Comment',
  when: { v3Class: '* trimmed' },
}
const fileWith = (...rules: object[]): object => ({
  upstreams,
  partners: [{ id: 'acme', match: { any: true }, compare: { rules } }],
})
const configWith = (...rules: object[]) => parseConfig(fileWith(...rules))
const targetsOf = (...rules: object[]) => faultsOf(fileWith(...rules)).map((fault) => fault.split(':')[0])

describe('partners[].compare.rules', () => {
  it('has the conditions that are given and no other', () => {
    expect(configWith(rule).partners[0]?.compare.rules).toEqual([rule])
  })

  it.each([
    ['a name of a built-in rule', { name: builtInRules[0] }, 'name'],
    ['no owner', { owner: ' ' }, 'owner'],
    ['a day that is none', { expires: '2026-02-30' }, 'expires'],
    ['a path that no report shows', { path: 'Comment = "x"' }, 'path'],
    ['no condition', { when: {} }, 'when'],
    ['a class that could hold a value', { when: { v3Class: 'Ada Lovelace' } }, 'when.v3Class'],
    ['a class with two wildcards', { when: { v2Class: 'length:* *' } }, 'when.v2Class'],
    ['a condition that is unknown', { when: { v3Class: 'null', regex: '.*' } }, 'when.regex'],
  ])('refuses %s', (_, members, target) => {
    expect(targetsOf({ ...rule, ...members })).toEqual([`partners[0].compare.rules[0].${target}`])
  })

  it('refuses two rules of one name', () => {
    expect(targetsOf(rule, rule)).toEqual(['partners[0].compare.rules'])
  })

  it('warns of a rule from the day after its last', () => {
    expect(warningsOf(configWith(rule), 1, '2026-11-22')).toEqual([])
    expect(warningsOf(configWith(rule), 1, '2026-11-23')).toEqual([
      'partner acme: the rule comments-trimmed of operations expired on 2026-11-22, so differences of Comment count again. ' +
        'Remove it from compare.rules, or extend it if its reason still holds.',
    ])
  })
})
