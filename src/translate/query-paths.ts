import {
  type BinaryExpr,
  type BinaryOperator,
  type EnumLiteral,
  type Expr,
  type Literal,
  type PathExpr,
  type PropertySegment,
  QueryError,
  type TypeExpr,
} from '../odata/index.ts'

/** The path of each filterable field of the flat record in a V3 record (service.md 9.3). */
const v3Paths: ReadonlyMap<string, readonly string[]> = new Map<string, readonly string[]>([
  ...['ExternalID', 'Present', 'Absent', 'RecordedOn', 'ChangeProcessName', 'AttendableEventStart'].map(
    (name) => [name, [name]] as const,
  ),
  ['RecordedBy', ['RecordedBy', 'ExternalID']],
  ['Learner', ['Attendee', 'ExternalID']],
  ['AttendableEvent', ['Event', 'ExternalID']],
  ['SchoolAttendanceCode', ['AttendanceCode', 'ExternalID']],
  ['MinutesLate', ['Qualifier', 'MinutesLate']],
  ['Comment', ['Qualifier', 'Comment']],
])

/** Values of parameter aliases, by name without the `@`. */
type Aliases = ReadonlyMap<string, Expr>

/**
 * Rewrites an expression over the flat V2 record into one over the nested V3 record; aliases are replaced by their values.
 * The expression has been checked against the V2 model, so names exist and aliases end.
 * Error: `QueryError` with the position, naming a construct without a counterpart in V3.
 */
export function toV3Expression(node: Expr, aliases: Aliases): Expr {
  const inner = (expression: Expr): Expr => toV3Expression(expression, aliases)
  switch (node.kind) {
    case 'literal':
    case 'enum':
    case 'list':
      return node
    case 'array':
      return { ...node, items: node.items.map(inner) }
    case 'and':
    case 'or':
      return { ...node, operands: node.operands.map(inner) }
    case 'not':
    case 'negate':
      return { ...node, operand: inner(node.operand) }
    case 'binary':
      return toV3Binary({ ...node, left: inner(node.left), right: inner(node.right) })
    case 'call':
      return { ...node, arguments: node.arguments.map(inner) }
    case 'case':
      return {
        ...node,
        branches: node.branches.map(({ when, then }) => ({ when: inner(when), then: inner(then) })),
      }
    case 'cast':
      if (node.operand === undefined || !node.typeName.startsWith('Edm.'))
        return refuse('A cast to this type', node.position)
      return { ...node, operand: inner(node.operand) }
    case 'isof':
      return toV3TypeTest(node, inner)
    case 'object':
      return refuse('A JSON object', node.position)
    case 'path':
      return toV3Path(node, aliases)
  }
}

const COMPARISONS: readonly BinaryOperator[] = ['eq', 'ne', 'gt', 'ge', 'lt', 'le', 'in']

function toV3Binary(node: BinaryExpr): BinaryExpr {
  const { operator, left, right } = node
  if (!COMPARISONS.includes(operator)) return node
  return { ...node, left: atMidnight(left, right), right: atMidnight(right, left) }
}

/** V3 refuses a date alone for a time (service-facts 8); V2's parser reads midnight in UTC. */
function atMidnight(node: Expr, other: Expr): Expr {
  if (isDate(other)) return node
  if (node.kind === 'list') return { ...node, items: node.items.map(toMidnight) }
  return node.kind === 'literal' ? toMidnight(node) : node
}

const toMidnight = <Node extends Literal | EnumLiteral>(node: Node): Node | Literal =>
  node.kind === 'literal' && node.type === 'Edm.Date'
    ? { ...node, type: 'Edm.DateTimeOffset', value: `${node.value}T00:00:00Z` }
    : node

/** True for an expression of type Edm.Date: the flat type has no such field. */
function isDate(node: Expr): boolean {
  if (node.kind === 'binary') return isDate(node.left)
  if (node.kind === 'cast') return node.typeName === 'Edm.Date'
  if (node.kind === 'case') return node.branches.some(({ then }) => isDate(then))
  return node.kind === 'call' ? node.name === 'date' : node.kind === 'literal' && node.type === 'Edm.Date'
}

/**
 * The flat type has no base type and no derived type (OData URL conventions 5.1.1.11.2), so tests of the record's type are decided
 * here; its fields have the same primitive types in V3.
 */
function toV3TypeTest(node: TypeExpr, inner: (expression: Expr) => Expr): Expr {
  const { operand, typeName, position } = node
  const field = operand === undefined || isRecordItself(operand) ? undefined : operand
  if (field !== undefined && typeName.startsWith('Edm.')) return { ...node, operand: inner(field) }
  const value = field === undefined && typeName.endsWith('.AttendanceRecord')
  return { kind: 'literal', type: 'Edm.Boolean', value: String(value), position }
}

const isRecordItself = (node: Expr): boolean =>
  node.kind === 'path' &&
  ['$it', '$this'].includes(node.root.kind) &&
  node.segments.every(({ kind }) => kind === 'typeCast')

function toV3Path(node: PathExpr, aliases: Aliases): Expr {
  const { root, segments, position } = node
  if (root.kind === 'alias') {
    if (segments.length > 0) return refuse(`@${root.name}`, position)
    const value = aliases.get(root.name)
    // An alias without a value is null (OData URL conventions 5.3).
    if (value === undefined) return { kind: 'literal', type: 'null', value: 'null', position }
    // Positions inside its value belong to another text, so a fault gets the position of the alias.
    try {
      return toV3Expression(value, aliases)
    } catch (error) {
      throw error instanceof QueryError ? error.movedTo(position) : error
    }
  }
  if (root.kind === '$root' || root.kind === 'variable') return refuse('$root or a variable', position)
  // A cast to a value's own type has no effect, and the check has refused all others.
  const [first, ...rest] = segments.filter(({ kind }) => kind !== 'typeCast')
  if (first?.kind !== 'property') return refuse(describe(first?.kind ?? root.kind), position)
  const names = v3Paths.get(first.name)
  const [beyond] = rest
  if (names === undefined || beyond !== undefined) {
    const what = beyond === undefined ? first.name : `${first.name}/${describe(beyond.kind)}`
    return refuse(what, (names === undefined ? first : (beyond ?? first)).position)
  }
  const path = names.map((name): PropertySegment => ({ kind: 'property', name, position: first.position }))
  return { ...node, root: { kind: 'member' }, segments: path }
}

function describe(kind: string): string {
  return kind === 'any' || kind === 'all' ? `${kind}()` : kind
}

function refuse(what: string, position: number): never {
  throw new QueryError(`${what} has no counterpart in V3`, position)
}
