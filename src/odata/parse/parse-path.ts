import type {
  CountSegment,
  Expr,
  FunctionParameter,
  KeyPart,
  KeyValue,
  LambdaSegment,
  PathExpr,
  PathRoot,
  PathSegment,
} from '../ast.ts'
import type { Cursor } from './cursor.ts'

/** The parser of expressions, which is passed as a parameter, because paths contain expressions and expressions contain paths. */
type ParseExpression = (cursor: Cursor) => Expr

/** The state of a parser of one path. `below` is the height of the tallest expression inside the path so far. */
interface PathReader {
  readonly cursor: Cursor
  readonly expression: ParseExpression
  readonly segments: PathSegment[]
  below: number
}

const equalsSign = /[ \t]*=/y
const countOption = /\$?filter[ \t]*=/iy

function nest(reader: PathReader): Expr {
  const value = reader.expression(reader.cursor)
  reader.below = Math.max(reader.below, reader.cursor.height)
  return value
}

/** Converts a literal or an alias to the value of a key (ABNF keyPropertyValue). Returns `undefined` for any other expression. */
function toKeyValue(value: Expr): KeyValue | undefined {
  if (value.kind === 'literal') return value.type === 'null' ? undefined : value
  if (value.kind === 'enum') return value
  if (value.kind !== 'path' || value.root.kind !== 'alias' || value.segments.length > 0) return undefined
  return { kind: 'alias', name: value.root.name, position: value.position }
}

function parseNamedParts(reader: PathReader): FunctionParameter[] {
  const { cursor } = reader
  const parts: FunctionParameter[] = []
  do {
    cursor.skipSpaces()
    const { position } = cursor
    const name = cursor.name() ?? cursor.fail('Expected a parameter or key name')
    if (cursor.match(equalsSign) === undefined) cursor.fail('Expected "="')
    cursor.skipSpaces()
    parts.push({ name, value: nest(reader), position })
    cursor.skipSpaces()
  } while (cursor.eat(','))
  return parts
}

/** Parses parentheses after a name, which contain a key or the arguments of a function. */
function parseParentheses(reader: PathReader): void {
  const { cursor, segments } = reader
  const { position } = cursor
  cursor.expect('(')
  cursor.skipSpaces()
  const start = cursor.position
  const named = cursor.name() !== undefined && cursor.match(equalsSign) !== undefined
  cursor.position = start
  if (cursor.sees(')')) pushFunction(reader, [], position)
  else if (named) pushNamed(reader, parseNamedParts(reader), position)
  else {
    const value = toKeyValue(nest(reader)) ?? cursor.fail('Expected a literal as key', start)
    segments.push({ kind: 'key', parts: [{ value, position: value.position }], position })
  }
  cursor.skipSpaces()
  cursor.expect(')')
}

/** Adds a key if all values of `A(k=1)` are literals or aliases, and otherwise a function call. A qualified `A` is always a function. */
function pushNamed(reader: PathReader, parameters: readonly FunctionParameter[], position: number): void {
  const parts: KeyPart[] = []
  for (const parameter of parameters) {
    const value = toKeyValue(parameter.value)
    if (value !== undefined) parts.push({ name: parameter.name, value, position: parameter.position })
  }
  const isKey = parts.length === parameters.length && reader.segments.at(-1)?.kind !== 'typeCast'
  if (isKey) reader.segments.push({ kind: 'key', parts, position })
  else pushFunction(reader, parameters, position)
}

function pushFunction(reader: PathReader, parameters: readonly FunctionParameter[], position: number): void {
  const last = reader.segments.pop()
  if (last?.kind !== 'typeCast' && last?.kind !== 'property') {
    return reader.cursor.fail('Only a name can be called', position)
  }
  const name = last.kind === 'typeCast' ? last.typeName : last.name
  reader.segments.push({ kind: 'function', name, parameters, position: last.position })
}

function parseLambda(reader: PathReader, kind: 'any' | 'all', position: number): LambdaSegment {
  const { cursor } = reader
  cursor.expect('(')
  cursor.skipSpaces()
  if (kind === 'any' && cursor.eat(')')) return { kind, position }
  const variable = cursor.name() ?? cursor.fail('Expected a lambda variable')
  cursor.skipSpaces()
  cursor.expect(':')
  cursor.skipSpaces()
  cursor.variables.push(variable)
  const predicate = nest(reader)
  cursor.variables.pop()
  cursor.skipSpaces()
  cursor.expect(')')
  return { kind, lambda: { variable, predicate }, position }
}

/** Parses the optional filter in parentheses after `$count` (ABNF expandCountOption, without `$search`). */
function parseCount(reader: PathReader, position: number): CountSegment {
  const { cursor } = reader
  if (!cursor.eat('(')) return { kind: '$count', position }
  if (cursor.match(countOption) === undefined) cursor.fail('Expected $filter=')
  const filter = nest(reader)
  cursor.expect(')')
  return { kind: '$count', filter, position }
}

function parseAnnotation(cursor: Cursor, position: number): PathSegment {
  const term = cursor.qualifiedName('an annotation term')
  if (!cursor.eat('#')) return { kind: 'annotation', term, position }
  const qualifier = cursor.name() ?? cursor.fail('Expected a qualifier after "#"')
  return { kind: 'annotation', term, qualifier, position }
}

function parseSegment(reader: PathReader): void {
  const { cursor, segments } = reader
  const { position } = cursor
  if (cursor.eat('$count')) {
    segments.push(parseCount(reader, position))
  } else if (cursor.eat('$filter(')) {
    cursor.skipSpaces()
    segments.push({ kind: '$filter', predicate: nest(reader), position })
    cursor.skipSpaces()
    cursor.expect(')')
  } else if (cursor.eat('@')) {
    segments.push(parseAnnotation(cursor, position))
  } else {
    const name = cursor.qualifiedName('a property, "any", "all" or "$count"')
    const lower = name.toLowerCase()
    if ((lower === 'any' || lower === 'all') && cursor.sees('(')) {
      segments.push(parseLambda(reader, lower, position))
    } else {
      pushName(reader, name, position)
    }
  }
}

function pushName(reader: PathReader, name: string, position: number): void {
  const isType = name.includes('.')
  const segment: PathSegment = isType
    ? { kind: 'typeCast', typeName: name, position }
    : { kind: 'property', name, position }
  reader.segments.push(segment)
}

function parseRest(reader: PathReader, root: PathRoot, position: number): PathExpr {
  const { cursor, segments } = reader
  for (;;) {
    if (cursor.sees('(') && segments.length > 0) parseParentheses(reader)
    // ABNF memberExpr: a type name alone is not a member, so a member must follow a leading type name.
    else if (segments.length === 1 && segments[0]?.kind === 'typeCast') {
      cursor.expect('/')
      parseSegment(reader)
    } else if (cursor.eat('/')) parseSegment(reader)
    else break
  }
  cursor.grow(reader.below, position)
  return { kind: 'path', root, segments, position }
}

/** Parses a path whose first name has been consumed and is not a literal, an operator or a built-in function. */
export function parsePathFrom(
  cursor: Cursor,
  expression: ParseExpression,
  name: string,
  position: number,
): PathExpr {
  const reader: PathReader = { cursor, expression, segments: [], below: 0 }
  if (cursor.variables.includes(name)) return parseRest(reader, { kind: 'variable', name }, position)
  const lower = name.toLowerCase()
  if ((lower === 'any' || lower === 'all') && cursor.sees('('))
    cursor.fail('A collection must precede any and all')
  pushName(reader, name, position)
  return parseRest(reader, { kind: 'member' }, position)
}

/** Parses a path that begins with `$it`, `$this`, `$root`, `@alias` or `@NS.Term`. */
export function parseRootedPath(cursor: Cursor, expression: ParseExpression): PathExpr {
  const { position } = cursor
  const reader: PathReader = { cursor, expression, segments: [], below: 0 }
  if (cursor.eat('@')) {
    const name = cursor.qualifiedName('a parameter alias or annotation term')
    if (!name.includes('.')) return parseRest(reader, { kind: 'alias', name }, position)
    cursor.position = position + 1
    reader.segments.push(parseAnnotation(cursor, position))
    return parseRest(reader, { kind: 'member' }, position)
  }
  cursor.expect('$')
  const name = cursor.name()
  if (name === 'root' && cursor.eat('/')) {
    parseSegment(reader)
    return parseRest(reader, { kind: '$root' }, position)
  }
  if (name === 'it') return parseRest(reader, { kind: '$it' }, position)
  if (name === 'this') return parseRest(reader, { kind: '$this' }, position)
  return cursor.fail('Expected $it, $this or $root/', position)
}

/** Parses the segments of a resource path below the service root, such as `LearnerGroups(…)/LearnerIdentifiers/$count`. */
export function parseResourceSegments(cursor: Cursor, expression: ParseExpression): readonly PathSegment[] {
  const reader: PathReader = { cursor, expression, segments: [], below: 0 }
  parseSegment(reader)
  return parseRest(reader, { kind: '$root' }, cursor.position).segments
}

export function parseKeyAt(cursor: Cursor, expression: ParseExpression): readonly KeyPart[] {
  const { position } = cursor
  const reader: PathReader = { cursor, expression, segments: [], below: 0 }
  pushName(reader, '', position)
  parseParentheses(reader)
  const last = reader.segments.at(-1)
  return last?.kind === 'key' ? last.parts : cursor.fail('Expected a literal as key', position + 1)
}
