import type { Expr, ObjectMember, TypeExpr } from '../ast.ts'
import { findOperator, type InfixOperator, precedence } from '../operators.ts'
import type { Cursor } from './cursor.ts'
import { parseLiteral, parseNamedLiteral, parsePlainLiteral } from './parse-literal.ts'
import { parsePathFrom, parseRootedPath } from './parse-path.ts'

/** The built-in functions of OData 4.01 in canonical spelling, grouped by their number of arguments. Spatial functions are left out. */
const functionNames: readonly (readonly [min: number, max: number, names: string])[] = [
  [0, 0, 'mindatetime maxdatetime now'],
  [1, 1, 'length tolower toupper trim year month day hour minute second fractionalseconds totalseconds'],
  [1, 1, 'date time totaloffsetminutes round floor ceiling'],
  [2, 2, 'concat contains endswith indexof matchesPattern startswith hassubset hassubsequence'],
  [2, 3, 'substring'],
]

/** The built-in functions by lower-case name, because calls ignore case (OData URL conventions 5.1.1.4 ff.). */
const functions = new Map(
  functionNames.flatMap(([min, max, names]) =>
    names.split(' ').map((name) => [name.toLowerCase(), { name, min, max }] as const),
  ),
)

const notWord = /not(?=[ \t(])/iy
const jsonString = /"[^"\\\u0000-\u001f]*(?:\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4})[^"\\\u0000-\u001f]*)*"/y
// Matches the argument of `cast(T)` or `isof(T)`: only a type name before the closing parenthesis.
const typeAlone = /(?:Collection\([^\s(),'/]+\)|[^\s(),'/]+)[ \t]*\)/y

/** Parses an expression (ABNF commonExpr). Stops at the first character that cannot continue the expression. */
export function parseExpressionAt(cursor: Cursor): Expr {
  return parseBinary(cursor, precedence.or)
}

const isSpace = (code: number): boolean => code === 0x20 || code === 0x09

const isLetter = (code: number): boolean => (code | 0x20) >= 0x61 && (code | 0x20) <= 0x7a

/** Consumes the next operator and the spaces around it. Returns `undefined` if no operator with a precedence of at least `min` follows. */
function eatOperator(cursor: Cursor, min: number): InfixOperator | undefined {
  const { text, position } = cursor
  let start = position
  while (isSpace(text.charCodeAt(start))) start += 1
  // The ABNF requires spaces around operators, but generated filters omit a space next to a parenthesis.
  if (start === position && text.charAt(start - 1) !== ')') return undefined
  let end = start
  while (isLetter(text.charCodeAt(end))) end += 1
  const operator = end === start ? undefined : findOperator(text.slice(start, end))
  if (operator === undefined || precedence[operator] < min) return undefined
  if (!isSpace(text.charCodeAt(end)) && text.charAt(end) !== '(') return undefined
  cursor.position = end
  cursor.skipSpaces()
  return operator
}

/** Parses binary operators by precedence climbing, so that no operand is parsed twice. */
function parseBinary(cursor: Cursor, min: number): Expr {
  const { position } = cursor
  let left = parseUnary(cursor)
  let height = cursor.height
  for (let operator = eatOperator(cursor, min); operator !== undefined; operator = eatOperator(cursor, min)) {
    if (operator === 'and' || operator === 'or') {
      const operands = [left]
      do {
        operands.push(parseBinary(cursor, precedence[operator] + 1))
        height = Math.max(height, cursor.height)
      } while (eatOperator(cursor, precedence[operator]) !== undefined)
      left = { kind: operator, operands, position }
    } else {
      const right = parseBinary(cursor, precedence[operator] + 1)
      height = Math.max(height, cursor.height)
      left = { kind: 'binary', operator, left, right, position }
    }
    cursor.grow(height, position)
    height = cursor.height
  }
  cursor.height = height
  return left
}

function parseUnary(cursor: Cursor): Expr {
  return cursor.nested(() => {
    const { position } = cursor
    if (cursor.match(notWord) !== undefined) {
      cursor.skipSpaces()
      return prefix(cursor, 'not', position)
    }
    const literal = parsePlainLiteral(cursor)
    if (literal === undefined && cursor.eat('-')) {
      cursor.skipSpaces()
      return prefix(cursor, 'negate', position)
    }
    if (literal !== undefined) cursor.height = 1
    return parseMembership(cursor, literal ?? parsePrimary(cursor), position)
  })
}

function prefix(cursor: Cursor, kind: 'not' | 'negate', position: number): Expr {
  const operand = parseUnary(cursor)
  cursor.grow(cursor.height, position)
  return { kind, operand, position }
}

/** Parses `has` and `in`, which bind tighter than unary operators. For example, `not x in (1,2)` means `not (x in (1,2))`. */
function parseMembership(cursor: Cursor, operand: Expr, position: number): Expr {
  let left = operand
  let height = cursor.height
  for (;;) {
    const operator = eatOperator(cursor, precedence.has)
    if (operator !== 'has' && operator !== 'in') break
    const right = operator === 'in' && cursor.sees('(') ? parseList(cursor) : parseOperand(cursor)
    cursor.grow(Math.max(height, cursor.height), position)
    height = cursor.height
    left = { kind: 'binary', operator, left, right, position }
  }
  cursor.height = height
  return left
}

function parseOperand(cursor: Cursor): Expr {
  const literal = parsePlainLiteral(cursor)
  if (literal === undefined) return parsePrimary(cursor)
  cursor.height = 1
  return literal
}

/**
 * Parses `(1,2)` or `()` after `in`. If the first item is not a literal, the parentheses enclose an expression, which is returned (ABNF
 * inExpr).
 */
function parseList(cursor: Cursor): Expr {
  const { position } = cursor
  cursor.expect('(')
  cursor.skipSpaces()
  if (cursor.eat(')')) {
    cursor.height = 1
    return { kind: 'list', items: [], position }
  }
  const first = parseExpressionAt(cursor)
  cursor.skipSpaces()
  if (first.kind !== 'literal' && first.kind !== 'enum') {
    cursor.expect(')')
    return first
  }
  const items = [first]
  while (cursor.eat(',')) {
    cursor.skipSpaces()
    items.push(parseLiteral(cursor))
    cursor.skipSpaces()
  }
  cursor.expect(')')
  cursor.grow(1, position)
  return { kind: 'list', items, position }
}

function parsePrimary(cursor: Cursor): Expr {
  const { position } = cursor
  switch (cursor.text.charAt(position)) {
    case '(':
      return parseParenthesised(cursor)
    case '[':
      return parseArray(cursor)
    case '{':
      return parseObject(cursor)
    case '$':
    case '@':
      return parseRootedPath(cursor, parseExpressionAt)
    default:
      return parseWord(cursor)
  }
}

function parseParenthesised(cursor: Cursor): Expr {
  cursor.expect('(')
  cursor.skipSpaces()
  const inner = parseExpressionAt(cursor)
  cursor.skipSpaces()
  cursor.expect(')')
  return inner
}

function parseWord(cursor: Cursor): Expr {
  const { position } = cursor
  const name = cursor.qualifiedName('a property, a literal or a function')
  const literal = parseNamedLiteral(cursor, name, position)
  if (literal !== undefined) {
    cursor.height = 1
    return literal
  }
  if (cursor.sees('(') && !cursor.variables.includes(name)) {
    const lower = name.toLowerCase()
    if (functions.has(lower)) return parseCall(cursor, lower, position)
    if (lower === 'cast' || lower === 'isof') return parseTypeExpr(cursor, lower, position)
    if (lower === 'case') cursor.fail('case is not supported', position)
  }
  return parsePathFrom(cursor, parseExpressionAt, name, position)
}

/** Parses comma-separated items up to `close`, and sets `cursor.height` for the node that contains the items. */
function parseItems<T>(cursor: Cursor, close: string, position: number, item: () => T): T[] {
  const items: T[] = []
  let height = 0
  cursor.skipSpaces()
  if (!cursor.eat(close)) {
    do {
      cursor.skipSpaces()
      items.push(item())
      height = Math.max(height, cursor.height)
      cursor.skipSpaces()
    } while (cursor.eat(','))
    cursor.expect(close)
  }
  cursor.grow(height, position)
  return items
}

function parseCall(cursor: Cursor, called: string, position: number): Expr {
  const { name = called, min = 0, max = 0 } = functions.get(called) ?? {}
  cursor.expect('(')
  const values = parseItems(cursor, ')', position, () => parseExpressionAt(cursor))
  if (values.length < min || values.length > max) {
    const count = min === max ? `${min}` : `${min} to ${max}`
    cursor.fail(`${name} takes ${count} argument${max === 1 ? '' : 's'}`, position)
  }
  return { kind: 'call', name, arguments: values, position }
}

function parseTypeName(cursor: Cursor): string {
  if (!cursor.eat('Collection(')) return cursor.qualifiedName('a type name')
  const item = cursor.qualifiedName('a type name')
  cursor.expect(')')
  return `Collection(${item})`
}

function parseTypeExpr(cursor: Cursor, kind: TypeExpr['kind'], position: number): Expr {
  cursor.expect('(')
  cursor.skipSpaces()
  const start = cursor.position
  const alone = cursor.match(typeAlone) !== undefined
  cursor.position = start
  cursor.height = 0
  const operand = alone ? undefined : parseExpressionAt(cursor)
  if (operand !== undefined) {
    cursor.skipSpaces()
    cursor.expect(',')
    cursor.skipSpaces()
  }
  const typeName = parseTypeName(cursor)
  cursor.skipSpaces()
  cursor.expect(')')
  cursor.grow(cursor.height, position)
  return operand === undefined ? { kind, typeName, position } : { kind, operand, typeName, position }
}

/** Parses a JSON string, which is valid only in arrays and objects (ABNF stringInUrl). Returns `undefined` if no quote follows. */
function parseJsonString(cursor: Cursor): string | undefined {
  if (!cursor.sees('"')) return undefined
  const text = cursor.match(jsonString) ?? cursor.fail('Expected a JSON string')
  return String(JSON.parse(text))
}

function parseJsonValue(cursor: Cursor): Expr {
  const { position } = cursor
  const value = parseJsonString(cursor)
  if (value === undefined) return parseExpressionAt(cursor)
  cursor.height = 1
  return { kind: 'literal', type: 'Edm.String', value, position }
}

function parseArray(cursor: Cursor): Expr {
  const { position } = cursor
  cursor.expect('[')
  return { kind: 'array', items: parseItems(cursor, ']', position, () => parseJsonValue(cursor)), position }
}

function parseObject(cursor: Cursor): Expr {
  const { position } = cursor
  cursor.expect('{')
  const members = parseItems(cursor, '}', position, (): ObjectMember => {
    const start = cursor.position
    const name = parseJsonString(cursor) ?? cursor.fail('Expected a member name in quotes')
    cursor.skipSpaces()
    cursor.expect(':')
    cursor.skipSpaces()
    return { name, value: parseJsonValue(cursor), position: start }
  })
  return { kind: 'object', members, position }
}
