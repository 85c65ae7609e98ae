import type { ExpandItem, Expr, KeyPart, PathSegment, QueryOptions } from '../ast.ts'
import { inOption, QueryError } from '../query-error.ts'
import { Cursor } from './cursor.ts'
import { parseExpressionAt } from './parse-expression.ts'
import { findSystemOption, parseExpandAt, parseOptionAt, type SystemOption } from './parse-options.ts'
import { parseKeyAt, parseResourceSegments } from './parse-path.ts'

/** Parses a whole text. If text remains, throws `QueryError` with `expected`, which says what may follow the parsed part. */
function parseWhole<T>(text: string, parse: (cursor: Cursor) => T, expected: string): T {
  const cursor = new Cursor(text)
  const value = parse(cursor)
  cursor.expectEnd(expected)
  return value
}

/**
 * Parses the value of `$filter`, or any other common expression of OData 4.01, from percent-decoded text in linear time. Ignores the case
 * of keywords and function names. Throws `QueryError` (`ADP_QUERY`, 400) with the character position.
 */
export function parseFilter(text: string): Expr {
  const parse = (cursor: Cursor): Expr => {
    cursor.skipSpaces()
    return parseExpressionAt(cursor)
  }
  return parseWhole(text, parse, 'an operator or the end of the expression')
}

/** Parses the value of `$expand` from percent-decoded text. Throws `QueryError` (`ADP_QUERY`, 400) with the character position. */
export function parseExpand(text: string): readonly ExpandItem[] {
  return parseWhole(text, parseExpandAt, '"," or the end')
}

/**
 * Parses a percent-decoded resource path below the service root, without a leading `/`: entity sets, keys, navigation, `$count` and bound
 * functions (OData URL conventions 4). Parses an unqualified name with literal arguments as a name and a key. Throws `QueryError`
 * (`ADP_QUERY`, 400) with the character position.
 */
export function parseResourcePath(text: string): readonly PathSegment[] {
  const parse = (cursor: Cursor) => parseResourceSegments(cursor, parseExpressionAt)
  return parseWhole(text, parse, '"/" or the end of the path')
}

/**
 * Parses a percent-decoded key predicate, including its parentheses: `(<guid>)` or `(A=…,B=…)` (OData URL conventions 4.3.1). Returns one
 * unnamed part, or one or more named parts. Throws `QueryError` (`ADP_QUERY`, 400) with the character position.
 */
export function parseKey(text: string): readonly KeyPart[] {
  const parse = (cursor: Cursor) => parseKeyAt(cursor, parseExpressionAt)
  return parseWhole(text, parse, 'the end of the key')
}

/**
 * Parses a raw query string without its `?`. Options are separated before they are decoded, so an encoded `&` or `=` is part of a value.
 * `+` stands for a space, as in form encoding and ASP.NET. System options are recognised with or without `$`, ignoring case (OData 4.01). A
 * system option that occurs twice in any spelling is an error, and so is an unknown name with `$`. `@name=…` is a parameter alias. Every
 * other name is ignored.
 *
 * Throws `QueryError` (`ADP_QUERY`, 400) with the name of the option and the position in its decoded value, or position 0 if the option
 * itself is not allowed. If an option has no value or a malformed name, the error has no `option`, and its position is the position in
 * the raw string.
 */
export function parseQuery(query: string): QueryOptions {
  const seen = new Set<string>()
  const aliases = new Map<string, Expr>()
  let options: QueryOptions = {}
  let position = -1
  for (const part of query.split('&')) {
    const start = position + 1
    position = start + part.length
    const equals = part.indexOf('=')
    const name = decode(equals < 0 ? part : part.slice(0, equals), (message, at) => {
      throw new QueryError(message, start + at)
    })
    // `$levels` is valid only inside `$expand`.
    const found = findSystemOption(name)
    const system = found === 'levels' ? undefined : found
    // Error messages show a system option in its usual spelling. Other names are shortened, because the reply repeats the name.
    const shown = found === undefined ? name.slice(0, 128) : `$${found}`
    const value = equals < 0 ? undefined : decodeValue(part.slice(equals + 1), shown)
    if (system === undefined && !name.startsWith('@')) {
      if (name.startsWith('$')) throw new QueryError('The system query option is not known', 0, shown)
      continue
    }
    const key = system ?? name
    if (value === undefined) throw new QueryError('Expected "=" after the option', start + name.length)
    if (seen.has(key)) throw new QueryError('The option is given twice', 0, shown)
    seen.add(key)
    if (system === undefined)
      aliases.set(
        name.slice(1),
        inOption(name, () => parseFilter(value)),
      )
    else options = { ...options, ...inOption(shown, () => parseSystemOption(system, value)) }
  }
  return aliases.size > 0 ? { ...options, aliases } : options
}

/** Parses a query like `parseQuery`, but throws `QueryError` if `$format` is given and is not JSON. */
export function parseJsonQuery(query: string): QueryOptions {
  const options = parseQuery(query)
  if (options.format !== undefined && !/^(?:json$|application\/json)/i.test(options.format))
    throw new QueryError('Replies are available only as JSON', 0, '$format', 'Omit $format')
  return options
}

function parseSystemOption(option: SystemOption, text: string): QueryOptions {
  const parse = (cursor: Cursor): QueryOptions => {
    if (option !== 'skiptoken') cursor.skipSpaces()
    return parseOptionAt(cursor, option)
  }
  return parseWhole(text, parse, 'the end of the option')
}

type Fail = (message: string, at: number) => never

const decodeValue = (raw: string, option: string): string =>
  decode(raw, (message, at) => {
    // The text before the malformed escape can be decoded, because `at` is never inside a multi-byte character.
    throw new QueryError(message, decodeURIComponent(raw.slice(0, at).replaceAll('+', ' ')).length, option)
  })

function decode(raw: string, fail: Fail): string {
  const text = raw.replaceAll('+', ' ')
  if (!isEncoding(text)) return fail('The percent-encoding is not valid UTF-8', strayEscape(text))
  const hash = text.indexOf('#')
  // A "#" that is not encoded would end the query and start the fragment (RFC 3986 3.5).
  return hash >= 0 ? fail('"#" must be written as %23 in a query', hash) : decodeURIComponent(text)
}

function isEncoding(text: string): boolean {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}

function strayEscape(text: string): number {
  const incomplete = text.search(/%(?![0-9a-f]{2})/i)
  for (const { 0: run, index } of text.matchAll(/(?:%[0-9a-f]{2})+/gi))
    if ((incomplete < 0 || index < incomplete) && !isEncoding(run)) return index
  return incomplete
}
