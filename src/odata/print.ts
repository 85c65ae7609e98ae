import type {
  EnumLiteral,
  ExpandItem,
  Expr,
  KeyPart,
  Literal,
  OrderByItem,
  PathExpr,
  PathSegment,
  QueryOptions,
  SelectItem,
} from './ast.ts'
import { precedence } from './operators.ts'
import { systemOptions } from './parse/parse-options.ts'
import type { Selection, TypedExpand } from './typed/typed-ast.ts'

const quote = (text: string): string => `'${text.replaceAll("'", "''")}'`

function printLiteral({ type, value }: Literal): string {
  if (type === 'Edm.String') return quote(value)
  if (type === 'Edm.Duration') return `duration'${value}'`
  if (type === 'Edm.Binary') return `binary'${value}'`
  // Guids are printed in lower case, because some services compare guids as text.
  if (type === 'Edm.Guid') return value.toLowerCase()
  return value
}

const printEnum = ({ typeName, members }: EnumLiteral): string => `${typeName}'${members.join(',')}'`

function bindingOf(node: Expr): number {
  if (node.kind === 'and' || node.kind === 'or') return precedence[node.kind]
  if (node.kind === 'binary') return precedence[node.operator]
  return node.kind === 'not' || node.kind === 'negate' ? precedence.unary : precedence.primary
}

function printAt(node: Expr, min: number): string {
  const text = printNode(node)
  return bindingOf(node) < min ? `(${text})` : text
}

const printAll = (nodes: readonly Expr[]): string => nodes.map((node) => printFilter(node)).join(',')

function printNode(node: Expr): string {
  switch (node.kind) {
    case 'literal':
      return printLiteral(node)
    case 'enum':
      return printEnum(node)
    case 'list':
      return `(${printAll(node.items)})`
    case 'array':
      return `[${printAll(node.items)}]`
    case 'object':
      return `{${node.members.map(({ name, value }) => `${JSON.stringify(name)}:${printFilter(value)}`).join(',')}}`
    case 'and':
    case 'or':
      return node.operands
        .map((operand) => printAt(operand, precedence[node.kind] + 1))
        .join(` ${node.kind} `)
    case 'binary': {
      const binding = precedence[node.operator]
      return `${printAt(node.left, binding)} ${node.operator} ${printAt(node.right, binding + 1)}`
    }
    case 'not':
      return `not ${printAt(node.operand, precedence.unary)}`
    case 'negate':
      return printNegation(node.operand)
    case 'call':
      return `${node.name}(${printAll(node.arguments)})`
    case 'cast':
    case 'isof':
      return `${node.kind}(${node.operand === undefined ? '' : `${printFilter(node.operand)},`}${node.typeName})`
    case 'path':
      return printPath(node)
  }
}

/** Prints a negation. Adds parentheses if the sign would otherwise be parsed as a part of a number. */
function printNegation(operand: Expr): string {
  const text = printAt(operand, precedence.unary)
  return /^(?:\d|INF)/.test(text) ? `-(${text})` : `-${text}`
}

function printKeyPart({ name, value }: KeyPart): string {
  const text = value.kind === 'alias' ? `@${value.name}` : printFilter(value)
  return name === undefined ? text : `${name}=${text}`
}

function printSegment(segment: PathSegment): string {
  switch (segment.kind) {
    case 'property':
      return segment.name
    case 'typeCast':
      return segment.typeName
    case 'key':
      return `(${segment.parts.map(printKeyPart).join(',')})`
    case '$count':
      return segment.filter === undefined ? '$count' : `$count($filter=${printFilter(segment.filter)})`
    case '$filter':
      return `$filter(${printFilter(segment.predicate)})`
    case 'any':
    case 'all': {
      const { lambda } = segment
      return `${segment.kind}(${lambda === undefined ? '' : `${lambda.variable}:${printFilter(lambda.predicate)}`})`
    }
    case 'function':
      return `${segment.name}(${segment.parameters.map(({ name, value }) => `${name}=${printFilter(value)}`).join(',')})`
    case 'annotation':
      return `@${segment.term}${segment.qualifier === undefined ? '' : `#${segment.qualifier}`}`
  }
}

function printPath({ root, segments }: PathExpr): string {
  let text = ''
  if (root.kind === 'variable') text = root.name
  else if (root.kind === 'alias') text = `@${root.name}`
  else if (root.kind !== 'member') text = root.kind
  for (const segment of segments) {
    text += (text === '' || segment.kind === 'key' ? '' : '/') + printSegment(segment)
  }
  return text
}

/** Prints an expression as decoded text with the fewest parentheses. Parsing this text returns the same tree except for positions. */
export function printFilter(expression: Expr): string {
  return printAt(expression, precedence.or)
}

function printNested(options: QueryOptions): string {
  const parts = listOptions(options).map(([name, value]) => `${name}=${value}`)
  return parts.length === 0 ? '' : `(${parts.join(';')})`
}

function printExpand(items: readonly ExpandItem[]): string {
  return items
    .map(({ path, suffix, options }) => {
      const names = path.map(({ name }) => name)
      if (suffix !== undefined) names.push(suffix)
      return names.join('/') + printNested(options)
    })
    .join(',')
}

function printSelect(items: readonly SelectItem[]): string {
  return items
    .map(({ path, select }) => {
      const nested = select === undefined ? '' : `($select=${printSelect(select)})`
      return path.map(({ name }) => name).join('/') + nested
    })
    .join(',')
}

function printOrderBy(items: readonly OrderByItem[]): string {
  return items
    .map(({ expression, direction }) => printFilter(expression) + (direction === 'desc' ? ' desc' : ''))
    .join(',')
}

function printValue(options: QueryOptions, name: keyof QueryOptions): string | undefined {
  if (name === 'filter') return options.filter && printFilter(options.filter)
  if (name === 'expand') return options.expand && printExpand(options.expand)
  if (name === 'select') return options.select && printSelect(options.select)
  if (name === 'orderby') return options.orderby && printOrderBy(options.orderby)
  return name === 'aliases' ? undefined : options[name]?.toString()
}

function listOptions(options: QueryOptions): readonly (readonly [name: string, value: string])[] {
  const listed: (readonly [string, string])[] = []
  for (const name of systemOptions) {
    const value = printValue(options, name)
    if (value !== undefined) listed.push([`$${name}`, value])
  }
  for (const [name, value] of options.aliases ?? []) listed.push([`@${name}`, printFilter(value)])
  return listed
}

// Characters that `encodeURIComponent` escapes although a query may contain them (RFC 3986 3.4).
const readable: Readonly<Record<string, string>> = {
  '%24': '$',
  '%2C': ',',
  '%2F': '/',
  '%3A': ':',
  '%3B': ';',
  '%3D': '=',
  '%40': '@',
}

/** Percent-encodes the value of an option, except for the punctuation of OData. */
function encodeOption(value: string): string {
  return encodeURIComponent(value.toWellFormed()).replace(
    /%(?:24|2C|2F|3[ABD]|40)/g,
    (escape) => readable[escape] ?? escape,
  )
}

/** Prints options as a raw query string without `?`. Parsing this string with `parseQuery` returns equal options. */
export function printQuery(options: QueryOptions): string {
  return listOptions(options)
    .map(([name, value]) => `${name}=${encodeOption(value)}`)
    .join('&')
}

/**
 * Prints the selection as in a context URL (OData protocol 10.7), such as `(Surname,House/Description)`. Prints nothing if all is selected.
 */
export function printSelection({
  select,
  expand = [],
}: {
  readonly select?: Selection | undefined
  readonly expand?: readonly TypedExpand[]
}): string {
  const selected = [...(select ?? [])].flatMap(([name, inner]) => pathsOf(name, inner))
  const expanded = expand.flatMap(({ property, query }) => {
    const inner = printSelection(query)
    return inner === '' ? [] : [property.name + inner]
  })
  const names = [...selected, ...expanded]
  return names.length === 0 ? '' : `(${names.join(',')})`
}

function pathsOf(name: string, inner: Selection | 'all'): string[] {
  if (inner === 'all') return [name]
  return [...inner].flatMap(([member, below]) => pathsOf(`${name}/${member}`, below))
}
