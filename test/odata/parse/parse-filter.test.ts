import { describe, expect, test } from 'vitest'

import { AdapterError } from '../../../src/errors.ts'
import { parseFilter } from '../../../src/odata/parse/parse-query.ts'
import { faultOf } from '../fault.ts'
import { outline } from '../outline.ts'

const guid = '01234567-89ab-cdef-0123-456789abcdef'

describe('parseFilter', () => {
  test('records the position of the first character of each node', () => {
    const at = (position: number, kind: string, members: object) => ({ kind, position, ...members })
    const path = (position: number, ...names: (readonly [name: string, position: number])[]) =>
      at(position, 'path', {
        root: { kind: 'member' },
        segments: names.map(([name, start]) => at(start, 'property', { name })),
      })
    const literal = (position: number, type: string, value: string) =>
      at(position, 'literal', { type, value })
    const left = path(5, ['A', 5], ['B', 7])
    const equals = at(5, 'binary', { operator: 'eq', left, right: literal(12, 'Edm.String', 'x') })
    const items = [literal(30, 'Edm.Int32', '1'), literal(32, 'Edm.Int32', '2')]
    const list = { left: path(21, ['Size', 21]), right: at(29, 'list', { items }) }
    expect(parseFilter(`not (A/B eq 'x') and Size in (1,2)`)).toEqual(
      at(0, 'and', {
        operands: [at(0, 'not', { operand: equals }), at(21, 'binary', { operator: 'in', ...list })],
      }),
    )
  })

  test.each([
    // Precedence and associativity (OData URL conventions 5.1.1.17)
    ['a or b and c', '(or a (and b c))'],
    ['a and b or c and d', '(or (and a b) (and c d))'],
    ['a or b or c', '(or a b c)'],
    ['(a or b) or c', '(or (or a b) c)'],
    ['not a or b', '(or (not a) b)'],
    ['not a and not b', '(and (not a) (not b))'],
    ['not a eq b', '(eq (not a) b)'],
    ['not (a eq b)', '(not (eq a b))'],
    ['not(a)', '(not a)'],
    ['not not a', '(not (not a))'],
    ['a eq b gt c', '(eq a (gt b c))'],
    ['a gt b eq c', '(eq (gt a b) c)'],
    ['a sub b sub c', '(sub (sub a b) c)'],
    ['a add b mul c', '(add a (mul b c))'],
    ['(a add b) mul c', '(mul (add a b) c)'],
    ['a div b mod c divby d', '(divby (mod (div a b) c) d)'],
    ['-a mul b', '(mul (negate a) b)'],
    ['- 1', '(negate Int32:1)'],
    ['-(1)', '(negate Int32:1)'],
    ['a sub -1', '(sub a Int32:-1)'],
    ['not a in (1)', '(not (in a (list Int32:1)))'],
    ["a add b has K'X'", '(add a (has b K:X))'],
    // Letter case and white space
    ["NAME EQ 'x' AND Price Lt 2 OR NOT Open", "(or (and (eq NAME 'x') (lt Price Int32:2)) (not Open))"],
    ["  a eq 'b'  ", "(eq a 'b')"],
    ['a\teq\tb', '(eq a b)'],
    ['(a eq 1)and(b eq 2)', '(and (eq a Int32:1) (eq b Int32:2))'],
    ['eq eq eq', '(eq eq eq)'],
    ['Élan eq null', '(eq Élan null:null)'],
    // The operator in
    ['a in ()', '(in a (list))'],
    ['a in (1)', '(in a (list Int32:1))'],
    [`a in ( ${guid} , null )`, `(in a (list Guid:${guid} null:null))`],
    ['a in (b)', '(in a b)'],
    ['a in (1 add 2)', '(in a (add Int32:1 Int32:2))'],
    ['a in [1,b]', '(in a (array Int32:1 b))'],
    ['a in b/Tags', '(in a b/Tags)'],
    // Function calls
    ["startswith( Name , 'x' )", "(startswith Name 'x')"],
    ["STARTSWITH(Name,'x')", "(startswith Name 'x')"],
    ["matchespattern(a,'b')", "(matchesPattern a 'b')"],
    ['substring(a,1,2)', '(substring a Int32:1 Int32:2)'],
    ['now( )', '(now)'],
    ['year(a) eq 2024', '(eq (year a) Int32:2024)'],
    ['cast(a,Edm.String)', '(cast a Edm.String)'],
    ['cast(Edm.String)', '(cast Edm.String)'],
    ['cast(a)', '(cast a)'],
    ['isof(a add 1,Collection(Edm.Int32))', '(isof (add a Int32:1) Collection(Edm.Int32))'],
    // JSON arrays and objects
    ['["a",\'b\',1,[],{}]', "(array 'a' 'b' Int32:1 (array) (object ))"],
    [String.raw`{"a":"\"A\n","b":c add 1}`, `(object a='"A\n' b=(add c Int32:1))`],
  ])('parses %s as the expected tree', (text, expected) => {
    expect(outline(parseFilter(text))).toBe(expected)
  })

  test.each([
    ['', 0, 'Expected a property, a literal or a function'],
    ['a eq', 2, 'Expected an operator or the end of the expression'],
    ['a eq ', 5, 'Expected a property, a literal or a function'],
    ['a eqq b', 2, 'Expected an operator or the end of the expression'],
    ["a eq'b'", 2, 'Expected an operator or the end of the expression'],
    ['1eq 1', 1, 'Expected an operator or the end of the expression'],
    ['a eq 1 b', 7, 'Expected an operator or the end of the expression'],
    ['(a eq 1', 7, 'Expected ")"'],
    ['a eq 1)', 6, 'Expected an operator or the end of the expression'],
    ["a eq 'b", 5, 'A string has no closing apostrophe'],
    ["a eq 'b''", 5, 'A string has no closing apostrophe'],
    ['a in (1,b)', 8, 'Expected a literal'],
    ['a in (b,1)', 7, 'Expected ")"'],
    ['contains(a)', 0, 'contains takes 2 arguments'],
    ['length(a,b)', 0, 'length takes 1 argument'],
    ['substring(a)', 0, 'substring takes 2 to 3 arguments'],
    ['now(1)', 0, 'now takes 0 arguments'],
    ['1 add case(a:1)', 6, 'case is not supported'],
    ['{"a" 1}', 5, 'Expected ":"'],
    ['{a:1}', 1, 'Expected a member name in quotes'],
    ['["a]', 1, 'Expected a JSON string'],
    ['a & b', 2, 'Expected an operator or the end of the expression'],
    ['a eq 1;drop', 6, 'Expected an operator or the end of the expression'],
    ['-', 1, 'Expected a property, a literal or a function'],
  ])('rejects %j at character %i', (text, position, message) => {
    expect(faultOf(() => parseFilter(text))).toEqual({ message, position })
  })

  test('throws an AdapterError with code, status and position for a malformed filter', () => {
    const fault = (() => {
      try {
        return parseFilter('a eq')
      } catch (error) {
        return error
      }
    })()
    expect(fault).toBeInstanceOf(AdapterError)
    expect(fault).toMatchObject({ code: 'ADP_QUERY', status: 400, at: { offset: 2 }, position: 2 })
  })
})

describe('parseFilter with long input', () => {
  const deep = 3_000

  test.each([
    ['arrays', '['.repeat(deep), 100],
    ['objects', '{"a":'.repeat(deep), 500],
    ['lambdas', 'a/any(b:'.repeat(deep / 2), 800],
    ['keys', 'a('.repeat(deep), 200],
    ['a chain of additions', `a${' add a'.repeat(deep)}`, 0],
    ['a chain of comparisons', `a${' eq a'.repeat(deep)}`, 0],
    ['a chain of has', `a${' has a'.repeat(deep)}`, 0],
    ['alternating not and parentheses', `${'not ('.repeat(deep)}a`, 250],
  ])('rejects deeply nested %s at the character that exceeds the depth limit', (_name, text, position) => {
    expect(faultOf(() => parseFilter(text))).toEqual({
      message: 'The query is nested more than 100 levels deep',
      position,
    })
  })

  test('accepts 2,000 operands at one level', () => {
    const text = Array.from({ length: 2_000 }, (_, n) => `a eq ${n}`).join(' or ')
    const parsed = parseFilter(text)
    expect(parsed.kind === 'or' && parsed.operands.length).toBe(2_000)
  })

  test('rejects a text of more than 32,768 characters', () => {
    expect(faultOf(() => parseFilter(`'${'x'.repeat(32_768)}'`))).toEqual({
      message: 'The text has more than 32768 characters',
      position: 32_768,
    })
  })

  test('rejects a name of more than 128 characters', () => {
    expect(faultOf(() => parseFilter(`a/${'b'.repeat(129)}`)).position).toBe(2)
    expect(outline(parseFilter('b'.repeat(128)))).toBe('b'.repeat(128))
  })

  test.each([
    ['nested parentheses', (n: number) => '('.repeat(n) + 'a' + ')'.repeat(n)],
    ['calls in calls', (n: number) => 'concat(a,'.repeat(n) + 'a' + ')'.repeat(n)],
    ['lists in conditions', (n: number) => `${'(a in (1,2) and '.repeat(n)}a${')'.repeat(n)}`],
    ['digits', (n: number) => '1'.repeat(n * 50)],
    ['unclosed strings', (n: number) => `'${"''".repeat(n * 25)}`],
    ['base64 without an end', (n: number) => `binary'${'A'.repeat(n * 50)}`],
    ['spaces', (n: number) => `a${' '.repeat(n * 50)}x`],
  ])('takes linear time: ten times as many %s take far less than a hundred times as long', (_name, build) => {
    const attempt = (text: string): void => {
      try {
        parseFilter(text)
      } catch (error) {
        expect(error).toBeInstanceOf(AdapterError)
      }
    }
    const measure = (text: string): number => {
      for (let warm = 0; warm < 5; warm++) attempt(text)
      const times = Array.from({ length: 9 }, () => {
        const start = performance.now()
        attempt(text)
        return performance.now() - start
      })
      return Math.min(...times)
    }
    // A parser that parsed any text twice per level would take time exponential in the depth.
    expect(measure(build(90))).toBeLessThan(Math.max(20, measure(build(9)) * 60))
  })
})
