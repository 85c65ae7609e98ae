import type {
  BinaryExpr,
  Expr,
  FilterSegment,
  LambdaSegment,
  PathExpr,
  PathSegment,
  TypeExpr,
} from '../ast.ts'
import { QueryError } from '../query-error.ts'
import type { ModelIndex } from '../typed/model-index.ts'
import { booleanType, describeType, nullType, primitive } from '../typed/scalar.ts'
import type {
  ConstantNode,
  CountNode,
  InNode,
  ItemSource,
  LambdaNode,
  MemberNode,
  TypedExpr,
} from '../typed/typed-ast.ts'
import {
  checkArithmetic,
  checkCall,
  checkComparison,
  checkEnumLiteral,
  checkHas,
  checkLiteral,
  checkNegation,
  comparable,
} from './check-operation.ts'

interface Scope {
  readonly index: ModelIndex
  /** The current instance (`$this`), whose members need no prefix. */
  readonly instance: MemberNode
  /** The entity to which the whole query applies (`$it`). */
  readonly it: MemberNode
  readonly variables: ReadonlyMap<string, MemberNode>
  readonly aliases: ReadonlyMap<string, Expr>
  /** The aliases whose values contain this expression. A reference to one of these aliases would be circular. */
  readonly openAliases: ReadonlySet<string>
  /** The number of lambda variables and of alias references so far. All scopes of one check share this object. */
  readonly used: { variables: number; aliases: number }
  /** The value of `now()`, in milliseconds since 1970. */
  readonly now: number
}

const nullConstant = (position: number): ConstantNode => ({
  kind: 'constant',
  value: null,
  type: nullType,
  position,
})

function requireBoolean(node: TypedExpr): TypedExpr {
  const { family, collection } = node.type
  if (!collection && (family === 'boolean' || family === 'null')) return node
  throw new QueryError(`Expected a condition, found ${describeType(node.type)}`, node.position)
}

function requireSingle(node: TypedExpr): TypedExpr {
  if (!node.type.collection) return node
  throw new QueryError('A collection can be used with any, all, in and $count only', node.position)
}

/** Limits for aliases. An alias may refer to other aliases, so without limits a short query could expand to any size. */
const maxAliasDepth = 4
const maxAliasUses = 100

export interface CheckSettings {
  /** The values of parameter aliases, by name without the `@`. Defaults to an empty map. */
  readonly aliases?: ReadonlyMap<string, Expr>
  /** The value of `now()`, in milliseconds since 1970. */
  readonly now: number
}

/**
 * Checks an expression against the entity type with the qualified name `typeName`. Resolves names, rejects unknown properties and operands
 * of the wrong type, converts literals to the needed types, and replaces aliases by their values. Throws `QueryError` (`ADP_QUERY`, 400)
 * with the character position.
 */
export function checkExpression(
  expression: Expr,
  typeName: string,
  index: ModelIndex,
  settings: CheckSettings,
): TypedExpr {
  const it: MemberNode = {
    kind: 'member',
    variable: 0,
    path: [],
    type: index.valueType({ type: typeName, collection: false }),
    position: expression.position,
  }
  return check(expression, {
    index,
    instance: it,
    it,
    variables: new Map(),
    aliases: settings.aliases ?? new Map<string, Expr>(),
    openAliases: new Set(),
    used: { variables: 0, aliases: 0 },
    now: settings.now,
  })
}

/** Checks an expression like `checkExpression`, but also throws `QueryError` if the type is neither Boolean nor null. */
export function checkFilter(
  filter: Expr,
  typeName: string,
  index: ModelIndex,
  settings: CheckSettings,
): TypedExpr {
  return requireBoolean(checkExpression(filter, typeName, index, settings))
}

function check(node: Expr, scope: Scope): TypedExpr {
  const { position } = node
  switch (node.kind) {
    case 'literal':
      return checkLiteral(node)
    case 'enum':
      return checkEnumLiteral(node, scope.index)
    case 'path':
      return checkPath(node, scope)
    case 'and':
    case 'or':
      return {
        kind: node.kind,
        operands: node.operands.map((operand) => requireBoolean(check(operand, scope))),
        type: booleanType,
        position,
      }
    case 'not':
      return { kind: 'not', operand: requireBoolean(check(node.operand, scope)), type: booleanType, position }
    case 'negate':
      return checkNegation(check(node.operand, scope), position)
    case 'binary':
      return checkBinary(node, scope)
    case 'call':
      return checkCall(
        node,
        node.arguments.map((argument) => check(argument, scope)),
        scope.now,
      )
    case 'cast':
    case 'isof':
      return checkTypeExpr(node, scope)
    case 'list':
    case 'array':
    case 'object':
      throw new QueryError(`${node.kind === 'object' ? 'An object' : 'A list'} is not allowed here`, position)
  }
}

function checkBinary(node: BinaryExpr, scope: Scope): TypedExpr {
  if (node.operator === 'in') return checkIn(node, scope)
  const left = requireSingle(check(node.left, scope))
  const right = requireSingle(check(node.right, scope))
  switch (node.operator) {
    case 'has':
      return checkHas(left, right, scope.index)
    case 'add':
    case 'sub':
    case 'mul':
    case 'div':
    case 'divby':
    case 'mod':
      return checkArithmetic(node.operator, left, right)
    case 'eq':
    case 'ne':
    case 'gt':
    case 'ge':
    case 'lt':
    case 'le':
      return checkComparison(node.operator, left, right, scope.index)
  }
}

function checkIn(node: BinaryExpr, scope: Scope): InNode | LambdaNode {
  const { position } = node
  const operand = requireSingle(check(node.left, scope))
  if (node.right.kind !== 'list' && node.right.kind !== 'array')
    return checkInCollection(operand, node.right, scope)
  const list: readonly Expr[] = node.right.items
  let wanted = operand
  const items = list.map((item) => {
    const [promoted, second] = comparable(wanted, check(item, scope), scope.index, false)
    wanted = promoted
    return second
  })
  return { kind: 'in', operand: wanted, items, type: booleanType, position }
}

/** Converts `x in Collection` to an `any` that is true if an item of the collection equals `x`. */
function checkInCollection(operand: TypedExpr, right: Expr, scope: Scope): LambdaNode {
  const collection = check(right, scope)
  if (collection.kind !== 'member' || !collection.type.collection) {
    throw new QueryError(
      `Expected a list or a collection, found ${describeType(collection.type)}`,
      collection.position,
    )
  }
  const variable = (scope.used.variables += 1)
  const type = { ...collection.type, collection: false }
  const item: MemberNode = { ...collection, variable, path: [], type }
  const predicate = checkComparison('eq', operand, item, scope.index)
  const source = { collection, variable, filters: [] }
  return { kind: 'any', source, predicate, type: booleanType, position: operand.position }
}

/** Checks `cast` and `isof`. The model has no inheritance, so `isof` is true if the operand has exactly the named type and is not null. */
function checkTypeExpr(node: TypeExpr, scope: Scope): TypedExpr {
  const { position, typeName } = node
  const operand = requireSingle(node.operand === undefined ? scope.instance : check(node.operand, scope))
  const target = scope.index.findType(typeName)
  if (target === undefined) throw new QueryError(`The type ${typeName} does not exist`, position)
  const same = target.name === operand.type.name
  if (node.kind === 'isof') {
    if (!same) return { kind: 'constant', value: false, type: booleanType, position }
    const right = nullConstant(position)
    return { kind: 'compare', operator: 'ne', left: operand, right, type: booleanType, position }
  }
  if (same) return operand
  const type = target.kind === 'primitive' ? primitive(target.name) : undefined
  const from = operand.type.family
  const convertible =
    type !== undefined &&
    (from === 'null' || from === type.family || type.family === 'string' || from === 'string') &&
    from !== 'structured'
  if (!convertible) {
    throw new QueryError(`${describeType(operand.type)} cannot be cast to ${typeName}`, position)
  }
  return { kind: 'cast', operand, type, position }
}

const int64 = primitive('Edm.Int64')

function resolveRoot(path: PathExpr, scope: Scope): MemberNode {
  const { root, position } = path
  switch (root.kind) {
    case 'member':
    case '$this':
      return { ...scope.instance, position }
    case '$it':
      return { ...scope.it, position }
    case 'variable': {
      const variable = scope.variables.get(root.name)
      if (variable === undefined) throw new QueryError('The lambda variable is not in scope', position)
      return { ...variable, position }
    }
    case '$root':
      throw new QueryError('$root is not supported', position)
    case 'alias':
      throw new QueryError('An alias cannot be followed by a path', position)
  }
}

/** Checks the value of an alias. An alias without a value is null (OData URL conventions 5.3). */
function checkAlias(name: string, position: number, scope: Scope): TypedExpr {
  const value = scope.aliases.get(name)
  if (value === undefined) return nullConstant(position)
  if (scope.openAliases.has(name)) throw new QueryError('The alias refers to itself', position)
  if (scope.openAliases.size >= maxAliasDepth)
    throw new QueryError(`Aliases are nested more than ${maxAliasDepth} levels deep`, position)
  scope.used.aliases += 1
  if (scope.used.aliases > maxAliasUses)
    throw new QueryError(`The query uses aliases more than ${maxAliasUses} times`, position)
  const openAliases = new Set([...scope.openAliases, name])
  // Positions inside an alias refer to another text, so an error gets the position at which the alias is used.
  try {
    const inner = { ...scope, instance: scope.it, variables: new Map<string, MemberNode>(), openAliases }
    return { ...check(value, inner), position }
  } catch (error) {
    throw error instanceof QueryError ? error.movedTo(position) : error
  }
}

function checkMember(from: MemberNode, name: string, position: number, scope: Scope): MemberNode {
  if (from.type.collection)
    throw new QueryError('After a collection only any, all, $filter and $count can follow', position)
  if (from.type.family !== 'structured') {
    throw new QueryError(`${describeType(from.type)} has no members`, position)
  }
  const owner = scope.index.structured(from.type.name)
  const member = owner.properties.get(name) ?? owner.navigation.get(name)
  if (member === undefined) {
    const cast = scope.index.findType(name)
    if (cast !== undefined && cast.name === owner.name) return from
    throw new QueryError(`${owner.name} has no property ${name}`, position)
  }
  return {
    kind: 'member',
    variable: from.variable,
    path: [...from.path, name],
    type: scope.index.valueType(member),
    position: from.position,
  }
}

function itemOf(source: ItemSource, position: number): MemberNode {
  const { collection, variable } = source
  const type = { ...collection.type, collection: false }
  return { kind: 'member', variable, path: [], type, position }
}

function checkItems(source: ItemSource, segment: FilterSegment, scope: Scope): ItemSource {
  const item = itemOf(source, segment.position)
  const filter = requireBoolean(check(segment.predicate, { ...scope, instance: item }))
  return { ...source, filters: [...source.filters, filter] }
}

function checkLambda(source: ItemSource, segment: LambdaSegment, scope: Scope): LambdaNode {
  const node = { kind: segment.kind, source, type: booleanType, position: source.collection.position }
  if (segment.lambda === undefined) return node
  const { variable, predicate } = segment.lambda
  const variables = new Map([...scope.variables, [variable, itemOf(source, segment.position)] as const])
  return { ...node, predicate: requireBoolean(check(predicate, { ...scope, variables })) }
}

/** Checks the last segment of a path to a collection. Returns `undefined` if the segment is not allowed there. */
function checkCollectionEnd(
  source: ItemSource,
  segment: PathSegment,
  scope: Scope,
): CountNode | LambdaNode | undefined {
  if (segment.kind === 'any' || segment.kind === 'all') return checkLambda(source, segment, scope)
  if (segment.kind !== '$count') return undefined
  const predicate = segment.filter
  const narrowed =
    predicate === undefined
      ? source
      : checkItems(source, { kind: '$filter', predicate, position: segment.position }, scope)
  return { kind: 'count', source: narrowed, type: int64, position: source.collection.position }
}

function checkPath(path: PathExpr, scope: Scope): TypedExpr {
  if (path.root.kind === 'alias' && path.segments.length === 0)
    return checkAlias(path.root.name, path.position, scope)
  let member = resolveRoot(path, scope)
  let source: ItemSource | undefined
  for (const [position, segment] of path.segments.entries()) {
    if (segment.kind === 'property' && source === undefined) {
      member = checkMember(member, segment.name, segment.position, scope)
      continue
    }
    if (segment.kind === 'typeCast' && scope.index.findType(segment.typeName)?.name === member.type.name)
      continue
    if (!member.type.collection) throw unsupported(segment)
    source ??= { collection: member, variable: (scope.used.variables += 1), filters: [] }
    if (segment.kind === '$filter') {
      source = checkItems(source, segment, scope)
      continue
    }
    const end = checkCollectionEnd(source, segment, scope)
    if (end === undefined || position < path.segments.length - 1) throw unsupported(segment)
    return end
  }
  if (source !== undefined) throw new QueryError('Expected $count, any or all after $filter', path.position)
  return member
}

function unsupported(segment: PathSegment): QueryError {
  const names: Readonly<Record<PathSegment['kind'], string>> = {
    property: 'A property',
    typeCast: 'A cast to this type',
    key: 'A key',
    $count: '$count',
    $filter: '$filter',
    any: 'any',
    all: 'all',
    function: 'A function of the service',
    annotation: 'An annotation',
  }
  return new QueryError(`${names[segment.kind]} is not allowed here`, segment.position)
}
