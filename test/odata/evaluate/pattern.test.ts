import fc from 'fast-check'
import { RE2JS } from 're2js'
import { describe, expect, test } from 'vitest'

import { compilePattern, translatePattern } from '../../../src/odata/evaluate/pattern.ts'
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
      '\\s',
      '\\S',
      '(?:\\b)',
      '(?:\\B)',
      '[\\S]',
      '[^\\s]',
      '[^]',
      '[]',
      '[^\\S]',
      '[[a]',
      '[\\b]',
      '{',
      ']',
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

/** The instructions that a pattern compiles to, and their bound; undefined for one that is refused. */
function programSizeOf(text: string): { real: number; bound: number } | undefined {
  try {
    compilePattern(text, 0)
  } catch {
    return undefined
  }
  const { source, size } = translatePattern(text, 0)
  return { real: RE2JS.compile(source).programSize(), bound: size }
}

describe('compilePattern', () => {
  test('matches what RegExp matches', () => {
    fc.assert(
      fc.property(
        anchored,
        fc.array(
          fc.constantFrom(
            'a',
            'b',
            'c',
            '1',
            '.',
            ' ',
            '\n',
            '\r',
            '\b',
            '[',
            ']',
            '{',
            '\u2028',
            '\u00a0',
            '\ufeff',
            'é',
          ),
          { maxLength: 6 },
        ),
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
    ['(a', 'missing closing )'],
    ['a)', 'unexpected )'],
    ['[a', '"[" without "]" at its character 2'],
    ['*a', 'missing argument to repetition operator'],
    ['a**', 'invalid nested repetition operator'],
    ['a{2,1}', 'invalid repeat count'],
    ['(?=a)', 'only plain and (?:…) groups at its character 1'],
    ['(?<!a)b', 'only plain and (?:…) groups at its character 1'],
    ['(?i)a', 'only plain and (?:…) groups at its character 1'],
    ['a(?', 'only plain and (?:…) groups at its character 2'],
    ['\\pL', 'an escape that is not supported at its character 1'],
    ['\\Qa\\E', 'an escape that is not supported at its character 1'],
    ['\\A', 'an escape that is not supported at its character 1'],
    ['\\u12', 'an escape that is not supported at its character 1'],
    ['(a)\\1', 'an escape that is not supported at its character 4'],
    ['\\', 'an escape that is not supported at its character 1'],
    ['[b-a]', 'invalid character class range'],
    ['[a-\\d]', 'invalid escape sequence'],
    ['('.repeat(500), 'missing closing )'],
  ])('refuses %j', (source, reason) => {
    expect(faultOf(() => compilePattern(source, 7))).toEqual({
      message: `The pattern cannot be used: ${reason}`,
      position: 7,
    })
  })

  test.each([
    ['((a{50}){50}){50}'],
    ['a{1001}'],
    ['a{999}{2}'],
    ['(?:a{0,100}){0,100}'],
    ['(?:(?:x{1000}|y{1000}){0,1}){20}'],
    [`(?:${'ab'.repeat(240)}){1000}`],
    ['[\\s](\\S{40}(a|b){40})*'.repeat(20)],
  ])('refuses %s, a small text that stands for a large program', (source) => {
    expect(faultOf(() => compilePattern(source, 3))).toEqual({
      message: 'The pattern is too large',
      position: 3,
    })
  })

  test('refuses a long text', () => {
    expect(faultOf(() => compilePattern('a'.repeat(501), 3))).toEqual({
      message: 'The pattern is longer than 500 characters',
      position: 3,
    })
  })

  test('bounds the program that the engine builds, whatever the text', () => {
    const piece = fc.constantFrom('(', '(?:', ')', '[', '[^', ']', '\\', '\\s', '\\S', '\\Q', '{', '}', ',', '{3}', '{2,}', '{0,9}', '|', '*', '+', '?', '^', '$', '-', 'a', '1', '.') // prettier-ignore
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 40 }), (pieces) => {
        const text = pieces.join('')
        const size = programSizeOf(text)
        if (size !== undefined) expect(size.real).toBeLessThanOrEqual(3 * size.bound + 4)
      }),
      { numRuns: 5000 },
    )
  })
})
