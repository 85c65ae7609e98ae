import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { compilePattern } from '../../../src/odata/evaluate/pattern.ts'
import { faultOf } from '../fault.ts'

const { pattern } = fc.letrec<{ pattern: string; term: string; atom: string }>((tie) => ({
  pattern: fc
    .array(
      fc.array(tie('term'), { maxLength: 3 }).map((terms) => terms.join('')),
      { minLength: 1, maxLength: 2 },
    )
    .map((choices) => choices.join('|')),
  term: fc
    .tuple(tie('atom'), fc.constantFrom('', '', '*', '+', '?', '{2}', '{1,}', '{0,2}', '*?'))
    .map(([atom, quantifier]) => atom + quantifier),
  atom: fc.oneof(
    { maxDepth: 2 },
    fc.constantFrom(
      'a',
      'b',
      '.',
      '\\d',
      '\\W',
      '[ab]',
      '[^a]',
      '[a-c1]',
      '[\\d-]',
      '\\.',
      '\\x61',
      '\\u0062',
      ' ',
    ),
    tie('pattern').map((inner) => `(${inner})`),
    tie('pattern').map((inner) => `(?:${inner})`),
  ),
}))

const anchored = fc
  .tuple(fc.constantFrom('', '^'), pattern, fc.constantFrom('', '$'))
  .map(([start, middle, end]) => `${start}(?:${middle})${end}`)
  // Nested repetitions of long patterns are refused as too large.
  .filter((source) => source.length < 60)

describe('compilePattern', () => {
  test('matches what RegExp matches', () => {
    fc.assert(
      fc.property(
        anchored,
        fc.array(fc.constantFrom('a', 'b', 'c', '1', '.', ' ', '\n'), { maxLength: 6 }),
        (source, characters) => {
          const text = characters.join('')
          expect(compilePattern(source, 0)(text)).toBe(new RegExp(source).test(text))
        },
      ),
      { numRuns: 2000 },
    )
  })

  test.each([
    ['^É', 'Élan', true],
    ['\\s', '\u00a0', true],
    ['[\\s\\S]', '\n', true],
    ['^[^]$', '\n', true],
    ['[]', 'a', false],
    ['[a-]', '-', true],
    ['\\t\\/\\-', '\t/-', true],
    ['', '', true],
    ['a||b', 'x', true],
    ['$^', '', true],
    ['x*$', 'yyy', true],
  ])('%j on %j', (source, text, expected) => {
    expect(compilePattern(source, 0)(text)).toBe(expected)
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
    ['(a', '"(" without ")" at its character 2'],
    ['a)', '")" without "(" at its character 1'],
    ['[a', '"[" without "]" at its character 2'],
    ['*a', 'a quantifier without an item at its character 0'],
    ['a**', 'a quantifier without an item at its character 2'],
    ['a{2,1}', 'a quantifier whose bounds are in the wrong order at its character 1'],
    ['(?=a)', 'only plain and (?:…) groups at its character 2'],
    ['(a)\\1', 'an escape that is not supported at its character 4'],
    ['\\', 'an escape that is not supported at its character 1'],
    ['[b-a]', 'a range that is not one at its character 4'],
    ['[\\d-z]', 'a range that is not one at its character 5'],
    ['('.repeat(30), 'groups too deep at its character 21'],
    ['a'.repeat(501), 'more than 500 characters at its character 0'],
  ])('refuses %j', (source, reason) => {
    expect(faultOf(() => compilePattern(source, 7))).toEqual({
      message: `The pattern cannot be used: ${reason}`,
      position: 7,
    })
  })

  test('refuses a small text that stands for a large program', () => {
    expect(faultOf(() => compilePattern('((a{50}){50}){50}', 3))).toEqual({
      message: 'The pattern is too large',
      position: 3,
    })
  })
})
