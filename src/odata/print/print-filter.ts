import type { EnumLiteral, Expr, KeyPart, Literal, PathExpr, PathSegment } from '../ast.ts'
import { precedence } from '../operators.ts'
import { printSearch } from './print-search.ts'

const quote = (text: string): string => `'${text.replaceAll("'", "''")}'`

function printLiteral({ type, value }: Literal): string {
  if (type === 'Edm.String') return quote(value)
  if (type === 'Edm.Duration') return `duration'${value}'`
  if (type === 'Edm.Binary') return `binary'${value}'`
  return value
}

const printEnum = ({ typeName, members }: EnumLiteral): string => `${typeName}'${members.join(',')}'`

/** How tightly the printed form of a node binds. */
function bindingOf(node: Expr): number {
  if (node.kind === 'and' || node.kind === 'or') return precedence[node.kind]
  if (node.kind === 'binary') return precedence[node.operator]
  return node.kind === 'not' || node.kind === 'negate' ? precedence.unary : precedence.primary
}

/** The text of a node, in parentheses where it binds looser than `min`. */
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
    case 'case':
      // The blank keeps `12:34` from being read as a time of day.
      return `case(${node.branches.map((branch) => `${printFilter(branch.when)}: ${printFilter(branch.then)}`).join(',')})`
    case 'path':
      return printPath(node)
  }
}

/** A sign directly before a digit would be read as part of a literal. */
function printNegation(operand: Expr): string {
  const text = printAt(operand, precedence.unary)
  return /^(?:\d|INF)/.test(text) ? `-(${text})` : `-${text}`
}

function printKeyPart({ name, value }: KeyPart): string {
  const text = value.kind === 'alias' ? `@${value.name}` : printFilter(value)
  return name === undefined ? text : `${name}=${text}`
}

function printCount(segment: Extract<PathSegment, { kind: '$count' }>): string {
  const options: string[] = []
  if (segment.filter !== undefined) options.push(`$filter=${printFilter(segment.filter)}`)
  if (segment.search !== undefined) options.push(`$search=${printSearch(segment.search)}`)
  return options.length === 0 ? '$count' : `$count(${options.join(';')})`
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
      return printCount(segment)
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

/**
 * Writes an expression as decoded text with no more parentheses than it needs: `parseFilter(printFilter(e))` is
 * `e` again, positions aside, for every tree that the parser can return.
 */
export function printFilter(expression: Expr): string {
  return printAt(expression, precedence.or)
}
