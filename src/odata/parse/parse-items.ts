import type { ExpandItem, ItemSegment, QueryOptions, SelectItem } from '../ast.ts'
import type { Cursor } from './cursor.ts'
import type { OptionName } from './option-names.ts'

/** Reads the options in parentheses after an item, including the opening parenthesis; `parse-options` provides it. */
export type ParseNested = (cursor: Cursor, allowed: readonly OptionName[]) => QueryOptions

// ABNF expandCountOption, expandRefOption, expandOption and selectOption
const countOptions: readonly OptionName[] = ['filter', 'search']
const refOptions: readonly OptionName[] = [...countOptions, 'orderby', 'skip', 'top', 'count']
const selectOptions: readonly OptionName[] = [...refOptions, 'compute', 'select', 'alias']
const expandOptions: readonly OptionName[] = [...selectOptions, 'expand', 'levels']

const noOptions: QueryOptions = {}
const afterParameterName = /[ \t]*[,)]/y

function parseItemSegment(cursor: Cursor, expected: string): ItemSegment {
  const { position } = cursor
  if (cursor.eat('*')) return { kind: 'star', name: '*', position }
  if (cursor.eat('@'))
    return { kind: 'annotation', name: cursor.qualifiedName('an annotation term'), position }
  let name = cursor.name() ?? cursor.fail(`Expected ${expected}`)
  while (cursor.eat('.')) {
    if (cursor.eat('*')) return { kind: 'star', name: `${name}.*`, position }
    name += `.${cursor.name() ?? cursor.fail('Expected a name after "."')}`
  }
  return { kind: name.includes('.') ? 'typeCast' : 'property', name, position }
}

/** One item of `$expand` (OData URL conventions 5.1.3): a path, `/$ref` or `/$count`, and options of its own. */
export function parseExpandItem(cursor: Cursor, nested: ParseNested): ExpandItem {
  const { position } = cursor
  if (cursor.eat('$value')) return { path: [], suffix: '$value', options: noOptions, position }
  const path: ItemSegment[] = []
  let suffix: '$ref' | '$count' | undefined
  do {
    if (path.length > 0 && cursor.eat('$ref')) suffix = '$ref'
    else if (path.length > 0 && path.at(-1)?.kind !== 'star' && cursor.eat('$count')) suffix = '$count'
    else path.push(parseItemSegment(cursor, 'a navigation property, "*" or "$ref"'))
    const last = path.at(-1)
    if (suffix === undefined && last?.kind === 'star') {
      if (last.name !== '*') cursor.fail('Expected a navigation property', last.position)
      if (cursor.sees('/$ref')) continue
      break
    }
    if (path.length === 1 && last?.kind === 'typeCast' && !cursor.sees('/')) cursor.fail('Expected "/"')
  } while (suffix === undefined && cursor.eat('/'))
  const allowed = allowedOptions(path, suffix)
  const options = allowed.length > 0 && cursor.sees('(') ? nested(cursor, allowed) : noOptions
  return suffix === undefined ? { path, options, position } : { path, suffix, options, position }
}

function allowedOptions(path: readonly ItemSegment[], suffix?: '$ref' | '$count'): readonly OptionName[] {
  if (path.at(-1)?.kind === 'star') return suffix === undefined ? ['levels'] : []
  if (suffix === '$ref') return refOptions
  return suffix === '$count' ? countOptions : expandOptions
}

/** One item of `$select` (OData URL conventions 5.1.4). */
export function parseSelectItem(cursor: Cursor, nested: ParseNested): SelectItem {
  const { position } = cursor
  const path: ItemSegment[] = []
  do path.push(parseItemSegment(cursor, 'a property or "*"'))
  while (path.at(-1)?.kind !== 'star' && cursor.eat('/'))
  if (!cursor.sees('(') || path.at(-1)?.kind === 'star') return { path, options: noOptions, position }
  const start = cursor.position
  cursor.expect('(')
  const overload = cursor.name() !== undefined && cursor.match(afterParameterName) !== undefined
  cursor.position = overload ? start + 1 : start
  if (!overload) return { path, options: nested(cursor, selectOptions), position }
  const names: string[] = []
  do {
    cursor.skipBlanks()
    names.push(cursor.name() ?? cursor.fail('Expected a parameter name'))
    cursor.skipBlanks()
  } while (cursor.eat(','))
  cursor.expect(')')
  return { path, parameterNames: names, options: noOptions, position }
}
