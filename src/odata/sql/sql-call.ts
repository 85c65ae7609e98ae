import type { CallNode, TypedExpr } from '../typed/typed-ast.ts'
import { bind, build, type SqlTerm } from './sql-fragment.ts'

/** ECMAScript WhiteSpace and LineTerminator: what `trim` removes. */
const blanks =
  '\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff'

/** Functions that SQLite computes exactly as the predicate does; case mapping and patterns are none of them. */
const templates: Readonly<Record<string, string>> = {
  concat: '({} || {})',
  contains: '(instr({}, {}) > 0)',
  indexof: '(instr({}, {}) - 1)',
  length: 'length({})',
  totalseconds: '({} / 1000.0)',
  round: 'round({})',
  floor: 'floor({})',
  ceiling: 'ceil({})',
}

/** Parts of a DateTimeOffset column, whose values are in UTC (`SqlMapping`). */
const calendarFormats: Readonly<Record<string, string>> = {
  year: '%Y',
  month: '%m',
  day: '%d',
  hour: '%H',
  minute: '%M',
  second: '%S',
}

type Translate = (argument: TypedExpr) => SqlTerm | undefined

/** A part is cut out at character counts that are known, so that SQLite's own rule for negative ones never applies. */
function sqlSubstring(
  { arguments: [text, start, length] }: CallNode,
  translate: Translate,
): SqlTerm | undefined {
  const from = start?.kind === 'constant' && typeof start.value === 'number' ? start.value : -1
  const count = length?.kind === 'constant' && typeof length.value === 'number' ? length.value : -1
  if (text === undefined || from < 0 || (length !== undefined && count < 0)) return undefined
  const whole = translate(text)
  return length === undefined
    ? build('substr({}, {})', whole, bind(from + 1))
    : build('substr({}, {}, {})', whole, bind(from + 1), bind(count))
}

function sqlCalendar(
  name: string,
  argument: TypedExpr | undefined,
  translate: Translate,
): SqlTerm | undefined {
  const format = calendarFormats[name]
  if (argument?.kind !== 'member' || argument.type.family !== 'instant') return undefined
  const value = translate(argument)
  if (name === 'date') return build('(floor({} / 86400000.0) * 86400000)', value)
  if (format === undefined) return undefined
  return build(`CAST(strftime('${format}', {} / 1000.0, 'unixepoch') AS INTEGER)`, value)
}

/** Translates a call of a built-in function; `undefined` where SQLite has no equal of it. */
export function sqlCall(node: CallNode, translate: Translate): SqlTerm | undefined {
  const [first, second] = node.arguments
  const template = templates[node.name]
  if (template !== undefined) return build(template, ...node.arguments.map(translate))
  if (node.name === 'substring') return sqlSubstring(node, translate)
  if (node.name === 'trim' && first !== undefined)
    return build('trim({}, {})', translate(first), bind(blanks))
  if (node.name !== 'startswith' && node.name !== 'endswith') return sqlCalendar(node.name, first, translate)
  if (first === undefined || second === undefined) return undefined
  const text = translate(first)
  const part = translate(second)
  return node.name === 'startswith'
    ? build('(substr({}, 1, length({})) = {})', text, part, part)
    : build(
        '(length({}) >= length({}) AND substr({}, length({}) - length({}) + 1) = {})',
        text,
        part,
        text,
        text,
        part,
        part,
      )
}
