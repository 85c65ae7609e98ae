import type { ExpandItem, Expr, ItemSegment, OrderByItem, QueryOptions, SelectItem } from '../ast.ts'
import type { Cursor } from './cursor.ts'
import { parseExpressionAt } from './parse-expression.ts'

/** The supported system query options without `$`, in the order in which a query is printed. */
export const systemOptions = [
  'filter',
  'orderby',
  'skip',
  'top',
  'count',
  'levels',
  'select',
  'expand',
  'skiptoken',
  'format',
] as const

export type SystemOption = (typeof systemOptions)[number]

/** The options that may occur in parentheses: system options and parameter aliases. */
type OptionName = SystemOption | 'alias'

const byName: ReadonlyMap<string, SystemOption> = new Map(systemOptions.map((name) => [name, name]))

/** Finds an option by its name, ignoring case, with or without `$` (OData 4.01 protocol 11.2.1). Only `$skiptoken` requires the `$`. */
export function findSystemOption(name: string): SystemOption | undefined {
  const lower = name.toLowerCase()
  if (lower.startsWith('$')) return byName.get(lower.slice(1))
  return lower === 'skiptoken' ? undefined : byName.get(lower)
}

const optionName = /\$?[A-Za-z]+(?==)/y
const direction = /[ \t]+(?:asc|desc)(?![\w.])/iy
const naturalNumber = /\d+/y
const levels = /[1-9]\d*|max/iy
const boolean = /true|false/iy
// The value of `$format` (ABNF format): a short name or a media type.
const format = /(?:atom|json|xml)(?![\w/])|[\w!$'()*+,.:;=@~-]+\/[\w!$'()*+,.:;=@~ -]+/iy
const token = /[\s\S]+/y

function parseList<T>(cursor: Cursor, item: () => T): T[] {
  const items: T[] = []
  do {
    cursor.skipSpaces()
    items.push(item())
    // Spaces around a comma are accepted, although the ABNF has none, because the expand lists of service.md 1.1 have spaces.
    const { position } = cursor
    cursor.skipSpaces()
    if (!cursor.sees(',')) cursor.position = position
  } while (cursor.eat(','))
  return items
}

export function parseExpandAt(cursor: Cursor): ExpandItem[] {
  return parseList(cursor, () => parseExpandItem(cursor))
}

function parseSelectAt(cursor: Cursor): SelectItem[] {
  return parseList(cursor, () => parseSelectItem(cursor))
}

/** Parses the value of `$orderby` (OData URL conventions 5.1.5). */
function parseOrderByAt(cursor: Cursor): OrderByItem[] {
  return parseList(cursor, () => {
    const { position } = cursor
    const expression = parseExpressionAt(cursor)
    const descending = cursor.match(direction)?.trimStart().toLowerCase() === 'desc'
    return { expression, direction: descending ? 'desc' : 'asc', position }
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

/** Parses the value of one option. Returns a `QueryOptions` with only this option. */
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
    case 'top':
      return { top: parseNumber(cursor, naturalNumber, 'a number from 0') }
    case 'skip':
      return { skip: parseNumber(cursor, naturalNumber, 'a number from 0') }
    case 'levels':
      return { levels: parseLevels(cursor) }
    case 'count':
      return { count: parseText(cursor, boolean, 'true or false').toLowerCase() === 'true' }
    case 'skiptoken':
      return { skiptoken: parseText(cursor, token, 'a token') }
    case 'format':
      return { format: parseText(cursor, format, 'json, xml, atom or a media type') }
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
  cursor.expect('=')
  return parseOptionAt(cursor, option)
}

function parseNestedOptions(cursor: Cursor, allowed: readonly OptionName[]): QueryOptions {
  return cursor.nested(() => {
    cursor.expect('(')
    const aliases = new Map<string, Expr>()
    let options: QueryOptions = {}
    do {
      cursor.skipSpaces()
      const { position } = cursor
      const option = parseNestedOption(cursor, allowed, aliases)
      const isAlias = option.aliases !== undefined
      if (!isAlias && Object.keys(option).some((name) => name in options)) {
        cursor.fail('The option is given twice', position)
      }
      options = { ...options, ...option }
      cursor.skipSpaces()
    } while (cursor.eat(';'))
    cursor.expect(')')
    return options
  })
}

// The options that may follow `/$count`, `/$ref` or a property in `$expand` (ABNF expandCountOption, expandRefOption and expandOption).
const countOptions: readonly OptionName[] = ['filter']
const refOptions: readonly OptionName[] = [...countOptions, 'orderby', 'skip', 'top', 'count']
const expandOptions: readonly OptionName[] = [...refOptions, 'select', 'alias', 'expand', 'levels']

function parseItemSegment(cursor: Cursor, expected: string): ItemSegment {
  const { position } = cursor
  if (cursor.eat('*')) return { kind: 'star', name: '*', position }
  const name = cursor.qualifiedName(expected)
  return { kind: name.includes('.') ? 'typeCast' : 'property', name, position }
}

/** Parses one item of `$expand`: a path, an optional `/$ref` or `/$count`, and nested options (OData URL conventions 5.1.3). */
function parseExpandItem(cursor: Cursor): ExpandItem {
  const { position } = cursor
  const path: ItemSegment[] = []
  let suffix: '$ref' | '$count' | undefined
  do {
    if (path.length > 0 && cursor.eat('$ref')) suffix = '$ref'
    else if (path.length > 0 && path.at(-1)?.kind !== 'star' && cursor.eat('$count')) suffix = '$count'
    else path.push(parseItemSegment(cursor, 'a navigation property, "*" or "$ref"'))
    const last = path.at(-1)
    if (suffix === undefined && last?.kind === 'star') {
      if (cursor.sees('/$ref')) continue
      break
    }
    if (path.length === 1 && last?.kind === 'typeCast' && !cursor.sees('/')) cursor.fail('Expected "/"')
  } while (suffix === undefined && cursor.eat('/'))
  const allowed = allowedOptions(path, suffix)
  const options = allowed.length > 0 && cursor.sees('(') ? parseNestedOptions(cursor, allowed) : {}
  return suffix === undefined ? { path, options, position } : { path, suffix, options, position }
}

function allowedOptions(path: readonly ItemSegment[], suffix?: '$ref' | '$count'): readonly OptionName[] {
  if (path.at(-1)?.kind === 'star') return suffix === undefined ? ['levels'] : []
  if (suffix === '$ref') return refOptions
  return suffix === '$count' ? countOptions : expandOptions
}

/** Parses one item of `$select` (OData URL conventions 5.1.4). */
function parseSelectItem(cursor: Cursor): SelectItem {
  const { position } = cursor
  const path: ItemSegment[] = []
  do path.push(parseItemSegment(cursor, 'a property or "*"'))
  while (path.at(-1)?.kind !== 'star' && cursor.eat('/'))
  if (!cursor.sees('(') || path.at(-1)?.kind === 'star') return { path, position }
  return { path, ...parseNestedOptions(cursor, ['select']), position }
}
