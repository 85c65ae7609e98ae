import type { EnumLiteral, KeyPart, KeyValue, Literal } from '../ast.ts'
import { Cursor, type QueryLimits } from './cursor.ts'
import { parseLiteral } from './parse-literal.ts'

function parseKeyValue(cursor: Cursor): KeyValue {
  const { position } = cursor
  if (cursor.eat('@'))
    return { kind: 'alias', name: cursor.name() ?? cursor.fail('Expected a name'), position }
  const value: Literal | EnumLiteral = parseLiteral(cursor)
  if (value.kind === 'literal' && value.type === 'null') cursor.fail('A key cannot be null', position)
  return value
}

function parseNamedPart(cursor: Cursor): KeyPart {
  const { position } = cursor
  const name = cursor.name() ?? cursor.fail('Expected the name of a key property')
  cursor.skipBlanks()
  cursor.expect('=')
  cursor.skipBlanks()
  return { name, value: parseKeyValue(cursor), position }
}

/**
 * Reads a key predicate from percent-decoded text, its parentheses included: `(<guid>)` or `(A=…,B=…)` (OData URL
 * conventions 4.3.1).
 *
 * @returns one part without a name, or one or more with names
 * @throws QueryError (`ADP_QUERY`, 400) with the character position
 */
export function parseKey(text: string, limits?: QueryLimits): readonly KeyPart[] {
  const cursor = new Cursor(text, limits)
  cursor.expect('(')
  cursor.skipBlanks()
  const start = cursor.position
  const named = cursor.name() !== undefined && (cursor.skipBlanks(), cursor.sees('='))
  cursor.position = start
  const parts: KeyPart[] = []
  if (named) {
    do {
      cursor.skipBlanks()
      parts.push(parseNamedPart(cursor))
      cursor.skipBlanks()
    } while (cursor.eat(','))
  } else {
    parts.push({ value: parseKeyValue(cursor), position: start })
    cursor.skipBlanks()
  }
  cursor.expect(')')
  cursor.expectEnd('the end of the key')
  return parts
}
