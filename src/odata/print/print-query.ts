import type { ExpandItem, ItemSegment, OrderByItem, QueryOptions, SelectItem } from '../ast.ts'
import { printFilter } from './print-filter.ts'
import { printSearch } from './print-search.ts'

const printSegment = ({ kind, name }: ItemSegment): string => (kind === 'annotation' ? `@${name}` : name)

function printNested(options: QueryOptions): string {
  const parts = listOptions(options).map(([name, value]) => `${name}=${value}`)
  return parts.length === 0 ? '' : `(${parts.join(';')})`
}

/** Writes the items of `$expand` as decoded text; the inverse of `parseExpand`. */
export function printExpand(items: readonly ExpandItem[]): string {
  return items
    .map(({ path, suffix, options }) => {
      const names = path.map(printSegment)
      if (suffix !== undefined) names.push(suffix)
      return names.join('/') + printNested(options)
    })
    .join(',')
}

/** Writes the items of `$select` as decoded text; the inverse of `parseSelect`. */
export function printSelect(items: readonly SelectItem[]): string {
  return items
    .map(({ path, parameterNames, options }) => {
      const overload = parameterNames === undefined ? '' : `(${parameterNames.join(',')})`
      return path.map(printSegment).join('/') + overload + printNested(options)
    })
    .join(',')
}

/** Writes the items of `$orderby` as decoded text; the inverse of `parseOrderBy`. */
export function printOrderBy(items: readonly OrderByItem[]): string {
  return items
    .map(({ expression, direction }) => printFilter(expression) + (direction === 'desc' ? ' desc' : ''))
    .join(',')
}

function printValue(options: QueryOptions, name: keyof QueryOptions): string | undefined {
  if (name === 'filter') return options.filter && printFilter(options.filter)
  if (name === 'expand') return options.expand && printExpand(options.expand)
  if (name === 'select') return options.select && printSelect(options.select)
  if (name === 'orderby') return options.orderby && printOrderBy(options.orderby)
  if (name === 'search') return options.search && printSearch(options.search)
  if (name === 'compute') {
    return options.compute?.map((item) => `${printFilter(item.expression)} as ${item.alias}`).join(',')
  }
  return name === 'aliases' ? undefined : options[name]?.toString()
}

const printOrder = [
  'filter',
  'search',
  'compute',
  'orderby',
  'skip',
  'top',
  'count',
  'levels',
  'select',
  'expand',
  'index',
  'skiptoken',
  'deltatoken',
  'format',
  'schemaversion',
] as const satisfies readonly (keyof QueryOptions)[]

/** The options that are given, as `[name with $ or @, decoded value]`, in a fixed order. */
export function listOptions(options: QueryOptions): readonly (readonly [name: string, value: string])[] {
  const listed: (readonly [string, string])[] = []
  for (const name of printOrder) {
    const value = printValue(options, name)
    if (value !== undefined) listed.push([`$${name}`, value])
  }
  for (const [name, value] of options.aliases ?? []) listed.push([`@${name}`, printFilter(value)])
  return listed
}

// Characters that encodeURIComponent escapes although a query may contain them (RFC 3986 3.4) and no reader splits at them.
const readable: Readonly<Record<string, string>> = {
  '%24': '$',
  '%2C': ',',
  '%2F': '/',
  '%3A': ':',
  '%3B': ';',
  '%3D': '=',
  '%40': '@',
}

/** Percent-encodes a decoded option value for a query string, with the marks of OData left readable. */
export function encodeOption(value: string): string {
  return encodeURIComponent(value.toWellFormed()).replace(
    /%(?:24|2C|2F|3[ABD]|40)/g,
    (escape) => readable[escape] ?? escape,
  )
}

/** Writes options as a raw query string without `?`: `parseQuery(printQuery(o)).options` is `o` again. */
export function printQuery(options: QueryOptions): string {
  return listOptions(options)
    .map(([name, value]) => `${name}=${encodeOption(value)}`)
    .join('&')
}
