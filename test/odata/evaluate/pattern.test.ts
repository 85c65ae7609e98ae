import { describe, expect, test } from 'vitest'

import { compilePattern } from '../../../src/odata/evaluate/pattern.ts'
import { faultOf } from '../fault.ts'

describe('compilePattern', () => {
  test.each([
    ['^É', 'Élan', true],
    ['[\\s\\S]', '\n', true],
    ['^[^]$', '\n', true],
    ['.', '\n', false],
    ['[]', 'a', false],
    ['[a-]', '-', true],
    ['\\u0062\\x61', 'ba', true],
    ['\\t\\/\\-', '\t/-', true],
    ['^\\d{4}-\\d{2}-\\d{2}$', '2026-03-02', true],
    ['', '', true],
    ['a||b', 'x', true],
    ['$^', '', true],
    ['x*$', 'yyy', true],
  ])('%j on %j, as RegExp', (source, text, expected) => {
    expect([compilePattern(source, 0)(text), new RegExp(source).test(text)]).toEqual([expected, expected])
  })

  test.each([
    ['(a+)+$', `${'a'.repeat(5000)}!`],
    ['^(a|a)*$', `${'a'.repeat(5000)}!`],
    ['(.*)*x', 'a'.repeat(5000)],
    [`${'a?'.repeat(100)}${'a'.repeat(100)}$`, 'a'.repeat(99)],
  ])('%s takes linear time where backtracking would take for ever', (source, text) => {
    expect(compilePattern(source, 0)(text)).toBe(false)
  })

  test.each([
    ['(a', 'The pattern cannot be used: missing closing )'],
    ['a)', 'The pattern cannot be used: unexpected )'],
    ['*a', 'The pattern cannot be used: missing argument to repetition operator'],
    ['a**', 'The pattern cannot be used: invalid nested repetition operator'],
    ['a{2,1}', 'The pattern cannot be used: invalid repeat count'],
    ['(?=a)', 'The pattern cannot be used: invalid or unsupported Perl syntax'],
    ['(a)\\1', 'The pattern cannot be used: invalid escape sequence'],
    ['[b-a]', 'The pattern cannot be used: invalid character class range'],
    ['('.repeat(500), 'The pattern cannot be used: missing closing )'],
    ['((a{50}){50}){50}', 'The pattern is too large'],
    ['a{1001}', 'The pattern is too large'],
    ['(?:a{0,100}){0,100}', 'The pattern is too large'],
    ['(?:x{1000}|y{1000}){0,1}'.repeat(20), 'The pattern is too large'],
    [`(?:${'ab'.repeat(240)}){1000}`, 'The pattern is too large'],
    ['a'.repeat(501), 'The pattern is longer than 500 characters'],
  ])('refuses %j', (source, message) => {
    expect(faultOf(() => compilePattern(source, 7))).toEqual({ message, position: 7 })
  })
})
