import type { SearchExpr } from '../ast.ts'
import type { Cursor } from './cursor.ts'

/** `;` ends the option inside parentheses; in an option of its own it got there percent-encoded and is text. */
interface SearchReader {
  readonly cursor: Cursor
  readonly word: RegExp
  readonly endsWithSemicolon: boolean
}

const wordPattern = /[^\s'()"][^\s()"]*/y
const nestedWordPattern = /[^\s'()";][^\s()";]*/y
const phrasePattern = /"[^"]+"/y
const incompletePattern = /'[^']*(?:''[^']*)*'/y

/** Whether an expression comes next: the words AND, OR and NOT are operators only before one. */
function startsExpression({ cursor, endsWithSemicolon }: SearchReader): boolean {
  return !cursor.atEnd && !cursor.sees(')') && !(endsWithSemicolon && cursor.sees(';'))
}

/** Consumes blanks, the operator word and blanks; or nothing, where the word is a search word or the end follows. */
function eatOperator(reader: SearchReader, operator: string): boolean {
  const { cursor } = reader
  const start = cursor.position
  if (cursor.skipBlanks() && cursor.eat(operator) && cursor.skipBlanks() && startsExpression(reader))
    return true
  cursor.position = start
  return false
}

/** Consumes what joins two operands of AND: `AND`, or nothing but blanks, as long as no OR follows. */
function eatAnd(reader: SearchReader): boolean {
  if (eatOperator(reader, 'AND')) return true
  const { cursor } = reader
  const start = cursor.position
  if (!eatOperator(reader, 'OR') && cursor.skipBlanks() && startsExpression(reader)) return true
  cursor.position = start
  return false
}

function parseUnary(reader: SearchReader): SearchExpr {
  const { cursor } = reader
  const { position } = cursor
  if (cursor.eat('NOT')) {
    if (cursor.skipBlanks() && startsExpression(reader)) {
      return { kind: 'not', operand: cursor.nested(() => parseUnary(reader)), position }
    }
    cursor.position = position
  }
  if (cursor.eat('(')) {
    cursor.skipBlanks()
    const inner = cursor.nested(() => parseOr(reader))
    cursor.skipBlanks()
    cursor.expect(')')
    return inner
  }
  const phrase = cursor.match(phrasePattern)
  if (phrase !== undefined) return { kind: 'term', text: phrase.slice(1, -1), position }
  const word = cursor.match(reader.word) ?? cursor.fail('Expected a search word or phrase')
  return { kind: 'term', text: word, position }
}

function parseRun(
  reader: SearchReader,
  kind: 'and' | 'or',
  operand: (reader: SearchReader) => SearchExpr,
  join: (reader: SearchReader) => boolean,
): SearchExpr {
  const { position } = reader.cursor
  const first = operand(reader)
  const operands = [first]
  while (join(reader)) operands.push(operand(reader))
  return operands.length === 1 ? first : { kind, operands, position }
}

const parseAnd = (reader: SearchReader): SearchExpr => parseRun(reader, 'and', parseUnary, eatAnd)

const parseOr = (reader: SearchReader): SearchExpr =>
  parseRun(reader, 'or', parseAnd, (at) => eatOperator(at, 'OR'))

/** A search expression up to the end, a `)` or a `;` (OData URL conventions 5.1.7); leaves the cursor there. */
export function parseSearchAt(cursor: Cursor): SearchExpr {
  cursor.skipBlanks()
  const { position, isNested } = cursor
  const incomplete = cursor.match(incompletePattern)
  if (incomplete !== undefined) {
    return { kind: 'incomplete', text: incomplete.slice(1, -1).replaceAll("''", "'"), position }
  }
  return parseOr({ cursor, word: isNested ? nestedWordPattern : wordPattern, endsWithSemicolon: isNested })
}
