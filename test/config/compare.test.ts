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

describe('the configuration key partners[].compare.rules', () => {
  it('contains each rule of the file with exactly the conditions that the file sets', () => {
    expect(configWith(rule).partners[0]?.compare.rules).toEqual([rule])
  })

  it.each([
    ['the name of a built-in rule', { name: builtInRules[0] }, 'name'],
    ['no owner', { owner: ' ' }, 'owner'],
    ['an invalid day', { expires: '2026-02-30' }, 'expires'],
    ['a path that no report can show', { path: 'Comment = "x"' }, 'path'],
    ['no condition', { when: {} }, 'when'],
    ['a class that could contain a value', { when: { v3Class: 'Ada Lovelace' } }, 'when.v3Class'],
    ['a class with two wildcards', { when: { v2Class: 'length:* *' } }, 'when.v2Class'],
    ['an unknown condition', { when: { v3Class: 'null', regex: '.*' } }, 'when.regex'],
  ])('refuses a rule with %s', (_, members, target) => {
    expect(targetsOf({ ...rule, ...members })).toEqual([`partners[0].compare.rules[0].${target}`])
  })

  it('refuses two rules with the same name', () => {
    expect(targetsOf(rule, rule)).toEqual(['partners[0].compare.rules'])
  })

  it('causes a warning from the day after a rule expires', () => {
    expect(warningsOf(configWith(rule), 1, '2026-11-22')).toEqual([])
    expect(warningsOf(configWith(rule), 1, '2026-11-23')).toEqual([
      expect.stringMatching(/^partner acme: the rule comments-trimmed .*operations.* expired on 2026-11-22/),
    ])
  })
})
