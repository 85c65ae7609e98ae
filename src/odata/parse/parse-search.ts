import type { SearchExpr } from '../ast.ts'
import type { Cursor } from './cursor.ts'

// A semicolon ends the option inside parentheses only: an option of its own was separated before it was decoded.
const word = /[^\s'()"][^\s()"]*/y
const nestedWord = /[^\s'()";][^\s()";]*/y
const phrasePattern = /"[^"]+"/y
const incompletePattern = /'[^']*(?:''[^']*)*'/y

/** Whether an expression comes next: the words AND, OR and NOT are operators only before one. */
function startsExpression(cursor: Cursor): boolean {
  return !cursor.atEnd && !cursor.sees(')') && !(cursor.isNested && cursor.sees(';'))
}

/** Consumes blanks, the operator word and blanks; or nothing, where the word is a search word or the end follows. */
function eatOperator(cursor: Cursor, operator: string): boolean {
  const start = cursor.position
  if (cursor.skipBlanks() && cursor.eat(operator) && cursor.skipBlanks() && startsExpression(cursor))
    return true
  cursor.position = start
  return false
}

/** Consumes the operator between two operands of AND: `AND`, or blanks without a following OR. */
function eatAnd(cursor: Cursor): boolean {
  if (eatOperator(cursor, 'AND')) return true
  const start = cursor.position
  if (!eatOperator(cursor, 'OR') && cursor.skipBlanks() && startsExpression(cursor)) return true
  cursor.position = start
  return false
}

function parseUnary(cursor: Cursor): SearchExpr {
  const { position } = cursor
  if (cursor.eat('NOT')) {
    if (cursor.skipBlanks() && startsExpression(cursor)) {
      return { kind: 'not', operand: cursor.nested(() => parseUnary(cursor)), position }
    }
    cursor.position = position
  }
  if (cursor.eat('(')) {
    cursor.skipBlanks()
    const inner = cursor.nested(() => parseOr(cursor))
    cursor.skipBlanks()
    cursor.expect(')')
    return inner
  }
  const phrase = cursor.match(phrasePattern)
  if (phrase !== undefined) return { kind: 'term', text: phrase.slice(1, -1), position }
  const text =
    cursor.match(cursor.isNested ? nestedWord : word) ?? cursor.fail('Expected a search word or phrase')
  return { kind: 'term', text, position }
}

function parseRun(
  cursor: Cursor,
  kind: 'and' | 'or',
  operand: (cursor: Cursor) => SearchExpr,
  join: (cursor: Cursor) => boolean,
): SearchExpr {
  const { position } = cursor
  const first = operand(cursor)
  const operands = [first]
  while (join(cursor)) operands.push(operand(cursor))
  return operands.length === 1 ? first : { kind, operands, position }
}

const parseAnd = (cursor: Cursor): SearchExpr => parseRun(cursor, 'and', parseUnary, eatAnd)

const parseOr = (cursor: Cursor): SearchExpr =>
  parseRun(cursor, 'or', parseAnd, (at) => eatOperator(at, 'OR'))

/** A search expression up to the end, a `)` or a `;` (OData URL conventions 5.1.7); leaves the cursor there. */
export function parseSearchAt(cursor: Cursor): SearchExpr {
  cursor.skipBlanks()
  const { position } = cursor
  const incomplete = cursor.match(incompletePattern)
  if (incomplete !== undefined) {
    return { kind: 'incomplete', text: incomplete.slice(1, -1).replaceAll("''", "'"), position }
  }
  return parseOr(cursor)
}
