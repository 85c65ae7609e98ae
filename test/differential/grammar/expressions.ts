import fc from 'fast-check'

import { type ByFamily, createLiterals, families, type Family, fields } from './literals.ts'
import type { Samples } from './samples.ts'

/** Generators of expressions before encoding. `@guid`, `@bool` and so on are parameter aliases, whose values other options may set. */
export interface Expressions {
  readonly literals: ByFamily
  /** A condition (ABNF boolCommonExpr). */
  readonly condition: fc.Arbitrary<string>
  /** A value of any type, for `$orderby`. */
  readonly value: fc.Arbitrary<string>
  /** A condition between operands whose types may not match. */
  readonly illTyped: fc.Arbitrary<string>
}

type Text = fc.Arbitrary<string>

const gap = fc.oneof(
  { weight: 20, arbitrary: fc.constant(' ') },
  { weight: 1, arbitrary: fc.constantFrom('  ', '\t') },
)
const comma = fc.oneof(
  { weight: 6, arbitrary: fc.constant(',') },
  { weight: 1, arbitrary: fc.constantFrom(', ', ' ,') },
)
/** Generates one of the words, sometimes in upper case (OData 4.01). */
const word = (...words: readonly string[]): Text =>
  fc.oneof(
    { weight: 8, arbitrary: fc.constantFrom(...words) },
    { weight: 1, arbitrary: fc.constantFrom(...words).map((text) => text.toUpperCase()) },
  )
const join = (...parts: readonly Text[]): Text => fc.tuple(...parts).map((texts) => texts.join(''))
const text = (value: string): Text => fc.constant(value)
const infix = (left: Text, operator: Text, right: Text): Text => join(left, gap, operator, gap, right)
const call = (name: string, ...parts: readonly Text[]): Text =>
  join(
    word(name),
    text('('),
    ...parts.flatMap((part, index) => (index === 0 ? [part] : [comma, part])),
    text(')'),
  )
const paren = (inner: Text): Text =>
  join(fc.constantFrom('(', '(', '( '), inner, fc.constantFrom(')', ')', ' )'))
/** Generates one of the choices by its weight. A failure shrinks to the first choice. */
const choose = (...choices: readonly (readonly [weight: number, choice: Text])[]): Text =>
  fc.oneof(
    { withCrossShrink: true, depthSize: 'small', maxDepth: 4 },
    ...choices.map(([weight, arbitrary]) => ({ weight, arbitrary })),
  )

const FLAT = 'AttendanceService.Models.OData.AttendanceRecord'
const fieldOf = (family: Family): Text =>
  fc
    .tuple(fc.constantFrom(...fields[family]), fc.integer({ min: 0, max: 24 }))
    .map(([name, spelling]) => (spelling === 24 ? `$it/${name}` : spelling === 23 ? `${FLAT}/${name}` : name))

/** Creates the generators of expressions (OData ABNF 4; types: OData URL conventions 5.1.1). */
export function createExpressions(samples: Samples): Expressions {
  const literals = createLiterals(samples)
  const tied = fc.letrec<Record<Family | 'condition', string>>((tie) => {
    const some = (family: Family | 'condition'): Text => tie(family)
    const simple = (family: Family): readonly (readonly [number, Text])[] => [
      ...(fields[family].length > 0 ? [[6, fieldOf(family)] as const] : []),
      [4, literals[family]],
      [1, text(`@${family}`)],
    ]
    const shared = (family: Family, edm: string): readonly (readonly [number, Text])[] => [
      [1, paren(some(family))],
      [1, call('cast', some(family), text(`Edm.${edm}`))],
    ]
    const [string, number, instant] = [some('string'), some('number'), some('instant')]
    return {
      guid: choose(...simple('guid'), ...shared('guid', 'Guid'), [1, call('cast', literals.guid.map((id) => `'${id}'`), text('Edm.Guid'))]),
      bool: choose(...simple('bool'), ...shared('bool', 'Boolean')),
      string: choose(
        ...simple('string'), ...shared('string', 'String'),
        [1, call('tolower', string)], [1, call('toupper', string)], [1, call('trim', string)], [1, call('concat', string, string)],
        [1, call('substring', string, number)], [1, call('substring', string, number, fc.nat(9).map(String))],
        [1, fc.constantFrom(...families).chain((family) => call('cast', some(family), text('Edm.String')))],
      ),
      number: choose(
        ...simple('number'), ...shared('number', 'Int32'),
        [2, infix(number, word('add', 'sub', 'mul', 'div', 'divby', 'mod'), number)],
        [1, join(fc.constantFrom('-', '- '), some('number'))],
        [1, call('length', string)], [1, call('indexof', string, string)],
        [1, fc.constantFrom('year', 'month', 'day', 'hour', 'minute', 'second', 'fractionalseconds', 'totaloffsetminutes').chain((name) => call(name, instant))],
        [1, fc.constantFrom('year', 'month', 'day').chain((name) => call(name, some('date')))],
        [1, fc.constantFrom('hour', 'minute', 'second').chain((name) => call(name, some('time')))],
        [1, fc.constantFrom('round', 'floor', 'ceiling').chain((name) => call(name, number))],
        [1, call('totalseconds', some('duration'))],
        [1, call('cast', string, fc.constantFrom('Edm.Int32', 'Edm.Int64', 'Edm.Decimal', 'Edm.Double', 'Edm.Byte'))],
      ),
      instant: choose(
        ...simple('instant'), ...shared('instant', 'DateTimeOffset'),
        [1, fc.constantFrom('now()', 'mindatetime()', 'maxdatetime()', 'NOW()')],
        [1, infix(instant, word('add', 'sub'), some('duration'))],
      ),
      date: choose(...simple('date'), [6, call('date', instant)], [1, infix(some('date'), word('add'), some('duration'))]),
      time: choose(...simple('time'), [6, call('time', instant)]),
      duration: choose(...simple('duration'), [3, infix(instant, word('sub'), instant)], [1, infix(some('duration'), word('mul', 'div'), number)]),
      condition: choose(
        ...families.map((family) => [fields[family].length > 0 ? 5 : 1, comparison(family, some(family))] as const),
        [3, paren(infix(some('condition'), word('and', 'or'), some('condition')))],
        [2, infix(some('condition'), word('and', 'or'), some('condition'))],
        [2, fc.constantFrom([' ', ''], ['(', ')'], [' (', ')']).chain(([open = '', close = '']) => join(word('not'), text(open), some('condition'), text(close)))],
        [2, fc.constantFrom('guid' as const, 'string' as const, 'number' as const, 'instant' as const).chain((family) => membership(some(family), literals[family]))],
        [3, fc.constantFrom('contains', 'startswith', 'endswith').chain((name) => call(name, string, string))],
        [1, fieldOf('bool')], [1, text('@bool')],
        [1, call('isof', fieldOf('string'), fc.constantFrom('Edm.String', 'Edm.Int32'))],
        [1, text(`isof(${FLAT})`)],
        [1, fc.constantFrom('AttendanceHistorys/any()', 'AttendanceHistorys/any(h:h/Present)', 'AttendanceHistorys/all(h:h/MinutesLate gt 3)', 'AttendanceHistorys/$count gt 0', 'not AttendanceHistorys/any(x:x/Comment eq Comment)')],
      ),
    }
  }) // prettier-ignore
  const values = families.map((family) => tied[family])
  return {
    literals,
    condition: tied.condition,
    value: fc.oneof({ withCrossShrink: true }, ...values),
    illTyped: fc.oneof(
      infix(fc.oneof(...values), word('eq', 'ne', 'gt', 'le', 'add', 'mod', 'has', 'in', 'and'), fc.oneof(...values)),
      fc
        .constantFrom('contains', 'length', 'year', 'date', 'totalseconds', 'round', 'tolower', 'indexof', 'substring', 'concat', 'time')
        .chain((name) => infix(call(name, fc.oneof(...values), fc.oneof(...values)), word('eq'), fc.oneof(...values))),
      fc.constantFrom('guid' as const, 'instant' as const, 'number' as const).chain((family) => membership(tied[family], fc.oneof(...Object.values(literals)))),
    ),
  } // prettier-ignore
}

function comparison(family: Family, value: Text): Text {
  const ordered = word('eq', 'ne', 'gt', 'ge', 'lt', 'le')
  const operators =
    family === 'guid' || family === 'bool'
      ? fc.oneof({ weight: 4, arbitrary: word('eq', 'ne') }, ordered)
      : ordered
  return fc.oneof(
    { withCrossShrink: true },
    { weight: 6, arbitrary: infix(value, operators, value) },
    { weight: 1, arbitrary: infix(value, word('eq', 'ne'), text('null')) },
    { weight: 1, arbitrary: infix(text('null'), word('eq', 'ne', 'lt'), value) },
  ) // prettier-ignore
}

function membership(value: Text, literal: Text): Text {
  const items = fc.array(fc.oneof({ weight: 9, arbitrary: literal }, text('null')), { maxLength: 4 })
  return infix(
    value,
    word('in'),
    fc
      .tuple(items, fc.constantFrom('()', '()', '[]'))
      .map(([list, [open, close]]) => `${open}${list.join(',')}${close}`),
  )
}
