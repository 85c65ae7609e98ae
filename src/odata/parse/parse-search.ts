import type { SearchExpr } from '../ast.ts'
import type { Cursor } from './cursor.ts'

interface SearchReader {
  readonly cursor: Cursor
  /**
   * Whether a semicolon that was not percent-encoded ends the option, as inside parentheses it does and ABNF searchWord says of all.
   * False for an option of its own in text that was handed in decoded: there it can only be data.
   */
  readonly endsAtSemicolon: boolean
}

const firstCharacters = /[^\s'()";][^\s()";]*/y
const furtherCharacters = /[^\s()";]+/y
const phrasePattern = /"[^"]+"/y
const incompletePattern = /'[^']*(?:''[^']*)*'/y

function isAtEnd({ cursor, endsAtSemicolon }: SearchReader): boolean {
  return endsAtSemicolon && cursor.sees(';') && !cursor.isAtEncodedSemicolon
}

/** Whether an expression comes next: the words AND, OR and NOT are operators only before one. */
function startsExpression(reader: SearchReader): boolean {
  return !reader.cursor.atEnd && !reader.cursor.sees(')') && !isAtEnd(reader)
}

/** Consumes a word; a semicolon that ends nothing is part of it. */
function eatWord(reader: SearchReader): string | undefined {
  const { cursor } = reader
  const start = cursor.position
  for (let characters = firstCharacters; ; characters = furtherCharacters) {
    const found = cursor.match(characters) !== undefined
    const isData = !isAtEnd(reader) && cursor.eat(';')
    if (!found && !isData) break
  }
  return cursor.position === start ? undefined : cursor.text.slice(start, cursor.position)
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

/** Consumes the operator between two operands of AND: `AND`, or blanks without a following OR. */
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
  const word = eatWord(reader) ?? cursor.fail('Expected a search word or phrase')
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
  const { position, isNested, knowsEncoding } = cursor
  const incomplete = cursor.match(incompletePattern)
  if (incomplete !== undefined) {
    return { kind: 'incomplete', text: incomplete.slice(1, -1).replaceAll("''", "'"), position }
  }
  return parseOr({ cursor, endsAtSemicolon: isNested || knowsEncoding })
}
