import type { Expr, PathExpr, PathSegment } from '../../src/odata/ast.ts'

function segmentText(segment: PathSegment): string {
  switch (segment.kind) {
    case 'property':
      return segment.name
    case 'typeCast':
      return `<${segment.typeName}>`
    case 'key':
      return `[${segment.parts.map(({ name, value }) => `${name ?? ''}=${value.kind === 'alias' ? `@${value.name}` : outline(value)}`).join(' ')}]`
    case '$count':
      return `$count{${segment.filter === undefined ? '' : outline(segment.filter)}}`
    case '$filter':
      return `$filter{${outline(segment.predicate)}}`
    case 'any':
    case 'all':
      return `${segment.kind}{${segment.lambda === undefined ? '' : `${segment.lambda.variable}: ${outline(segment.lambda.predicate)}`}}`
    case 'function':
      return `${segment.name}{${segment.parameters.map(({ name, value }) => `${name}=${outline(value)}`).join(' ')}}`
    case 'annotation':
      return `@${segment.term}${segment.qualifier === undefined ? '' : `#${segment.qualifier}`}`
  }
}

function pathText({ root, segments }: PathExpr): string {
  const start =
    root.kind === 'member'
      ? []
      : [root.kind === 'variable' || root.kind === 'alias' ? `${root.kind}:${root.name}` : root.kind]
  return [...start, ...segments.map(segmentText)].join('/')
}

/** Writes a syntax tree in a short prefix form for test tables, such as `(and (eq Name 'Milk') (not Open))`. */
export function outline(node: Expr): string {
  switch (node.kind) {
    case 'literal':
      return node.type === 'Edm.String' ? `'${node.value}'` : `${node.type.replace('Edm.', '')}:${node.value}`
    case 'enum':
      return `${node.typeName}:${node.members.join('|')}`
    case 'list':
    case 'array':
      return `(${[node.kind, ...node.items.map(outline)].join(' ')})`
    case 'object':
      return `(object ${node.members.map(({ name, value }) => `${name}=${outline(value)}`).join(' ')})`
    case 'and':
    case 'or':
      return `(${node.kind} ${node.operands.map(outline).join(' ')})`
    case 'binary':
      return `(${node.operator} ${outline(node.left)} ${outline(node.right)})`
    case 'not':
    case 'negate':
      return `(${node.kind} ${outline(node.operand)})`
    case 'call':
      return `(${[node.name, ...node.arguments.map(outline)].join(' ')})`
    case 'cast':
    case 'isof':
      return `(${[node.kind, ...(node.operand === undefined ? [] : [outline(node.operand)]), node.typeName].join(' ')})`
    case 'path':
      return pathText(node)
  }
}
