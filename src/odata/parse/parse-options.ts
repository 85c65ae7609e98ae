import type { ComputeItem, ExpandItem, Expr, OrderByItem, QueryOptions, SelectItem } from '../ast.ts'
import type { Cursor } from './cursor.ts'
import { findSystemOption, type OptionName, type SystemOption } from './option-names.ts'
import { parseExpressionAt } from './parse-expression.ts'
import { parseExpandItem, parseSelectItem } from './parse-items.ts'
import { parseSearchAt } from './parse-search.ts'

const optionName = /\$?[A-Za-z]+(?==)/y
const direction = /[ \t]+(?:asc|desc)(?![\w.])/iy
const asWord = /[ \t]+as[ \t]+/iy
const naturalNumber = /\d+/y
const integer = /-?\d+/y
const levels = /[1-9]\d*|max/iy
const boolean = /true|false/iy
// ABNF format: a short name or a media type; schemaversion: "*" or unreserved characters.
const format = /(?:atom|json|xml)(?![\w/])|[\w!$'()*+,.:;=@~-]+\/[\w!$'()*+,.:;=@~ -]+/iy
const schemaVersion = /\*|[\w.~-]+/y
const token = /[\s\S]+/y

function parseList<T>(cursor: Cursor, item: () => T): T[] {
  const items: T[] = []
  do {
    cursor.skipBlanks()
    items.push(item())
    // ABNF allows no blank before a comma here; the service's own expand lists have one after it (service.md 1.1).
    const { position } = cursor
    cursor.skipBlanks()
    if (!cursor.sees(',')) cursor.position = position
  } while (cursor.eat(','))
  return items
}

/** The items of `$expand` at the cursor. */
export function parseExpandAt(cursor: Cursor): ExpandItem[] {
  return parseList(cursor, () => parseExpandItem(cursor, parseNestedOptions))
}

/** The items of `$select` at the cursor. */
export function parseSelectAt(cursor: Cursor): SelectItem[] {
  return parseList(cursor, () => parseSelectItem(cursor, parseNestedOptions))
}

/** The items of `$orderby` at the cursor (OData URL conventions 5.1.5). */
export function parseOrderByAt(cursor: Cursor): OrderByItem[] {
  return parseList(cursor, () => {
    const { position } = cursor
    const expression = parseExpressionAt(cursor)
    const descending = cursor.match(direction)?.trimStart().toLowerCase() === 'desc'
    return { expression, direction: descending ? 'desc' : 'asc', position }
  })
}

function parseComputeAt(cursor: Cursor): ComputeItem[] {
  return parseList(cursor, () => {
    const { position } = cursor
    const expression = parseExpressionAt(cursor)
    if (cursor.match(asWord) === undefined) cursor.fail('Expected "as"')
    return { expression, alias: cursor.name() ?? cursor.fail('Expected a name after "as"'), position }
  })
}

function parseNumber(cursor: Cursor, pattern: RegExp, expected: string): number {
  const { position } = cursor
  const value = Number(cursor.match(pattern) ?? cursor.fail(`Expected ${expected}`))
  if (!Number.isSafeInteger(value)) cursor.fail('The number is too large', position)
  return value
}

function parseLevels(cursor: Cursor): number | 'max' {
  const { position } = cursor
  if (cursor.match(levels)?.toLowerCase() === 'max') return 'max'
  cursor.position = position
  const value = parseNumber(cursor, levels, 'a number from 1 or "max"')
  return value
}

const parseText = (cursor: Cursor, pattern: RegExp, expected: string): string =>
  cursor.match(pattern) ?? cursor.fail(`Expected ${expected}`)

/** The value of one system query option at the cursor, as a `QueryOptions` of that option alone. */
export function parseOptionAt(cursor: Cursor, option: SystemOption): QueryOptions {
  switch (option) {
    case 'filter':
      return { filter: parseExpressionAt(cursor) }
    case 'expand':
      return { expand: parseExpandAt(cursor) }
    case 'select':
      return { select: parseSelectAt(cursor) }
    case 'orderby':
      return { orderby: parseOrderByAt(cursor) }
    case 'compute':
      return { compute: parseComputeAt(cursor) }
    case 'search':
      return { search: parseSearchAt(cursor) }
    case 'top':
      return { top: parseNumber(cursor, naturalNumber, 'a number from 0') }
    case 'skip':
      return { skip: parseNumber(cursor, naturalNumber, 'a number from 0') }
    case 'index':
      return { index: parseNumber(cursor, integer, 'an integer') }
    case 'levels':
      return { levels: parseLevels(cursor) }
    case 'count':
      return { count: parseText(cursor, boolean, 'true or false').toLowerCase() === 'true' }
    case 'skiptoken':
      return { skiptoken: parseText(cursor, token, 'a token') }
    case 'deltatoken':
      return { deltatoken: parseText(cursor, token, 'a token') }
    case 'format':
      return { format: parseText(cursor, format, 'json, xml, atom or a media type') }
    case 'schemaversion':
      return { schemaversion: parseText(cursor, schemaVersion, 'a schema version') }
  }
}

function parseNestedOption(
  cursor: Cursor,
  allowed: readonly OptionName[],
  aliases: Map<string, Expr>,
): QueryOptions {
  const { position } = cursor
  if (allowed.includes('alias') && cursor.eat('@')) {
    const name = cursor.name() ?? cursor.fail('Expected a name after "@"')
    if (aliases.has(name)) cursor.fail('The alias is given twice', position)
    cursor.expect('=')
    aliases.set(name, parseExpressionAt(cursor))
    return { aliases }
  }
  const option = findSystemOption(cursor.match(optionName) ?? cursor.fail('Expected a query option'))
  if (option === undefined || !allowed.includes(option))
    cursor.fail('The option is not allowed here', position)
  if (cursor.refusesInItems(option)) cursor.fail('The option is not supported', position)
  cursor.expect('=')
  return parseOptionAt(cursor, option)
}

/** `($filter=…;$top=…)` at the cursor. */
function parseNestedOptions(cursor: Cursor, allowed: readonly OptionName[]): QueryOptions {
  return cursor.nested(() => {
    cursor.expect('(')
    const aliases = new Map<string, Expr>()
    let options: QueryOptions = {}
    do {
      cursor.skipBlanks()
      const { position } = cursor
      const option = parseNestedOption(cursor, allowed, aliases)
      const isAlias = option.aliases !== undefined
      if (!isAlias && Object.keys(option).some((name) => name in options)) {
        cursor.fail('The option is given twice', position)
      }
      options = { ...options, ...option }
      cursor.skipBlanks()
    } while (cursor.eat(';'))
    cursor.expect(')')
    return options
  })
}
