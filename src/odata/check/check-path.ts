import type { FilterSegment, LambdaSegment, PathExpr, PathSegment } from '../ast.ts'
import { booleanType, describeType, nullConstant, requireBoolean, type Scope } from './check-scope.ts'
import { QueryError } from '../query-error.ts'
import type { CountNode, ItemSource, LambdaNode, MemberNode, TypedExpr } from '../typed/typed-ast.ts'
import { primitive } from '../typed/value-type.ts'

/** Aliases that use aliases multiply: depth and number are bounded, or a short query could grow without end. */
const maxAliasDepth = 4

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

/** An alias without a value is null (OData URL conventions 5.3). */
function checkAlias(name: string, position: number, scope: Scope): TypedExpr {
  const value = scope.aliases.get(name)
  if (value === undefined) return nullConstant(position)
  if (scope.openAliases.has(name)) throw new QueryError('The alias is defined by itself', position)
  if (scope.openAliases.size >= maxAliasDepth) throw new QueryError('Aliases are nested too deep', position)
  scope.countAliasUse(position)
  const openAliases = new Set([...scope.openAliases, name])
  // Positions inside an alias lie in another text, so faults are placed where the alias is used.
  try {
    const inner = { ...scope, instance: scope.it, variables: new Map<string, MemberNode>(), openAliases }
    return { ...scope.check(value, inner), position }
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
    nullable: from.nullable || member.nullable,
    type: scope.index.valueType(member),
    position: from.position,
  }
}

/** The single item of a collection, as a variable of its own. */
function itemOf(source: ItemSource, position: number): MemberNode {
  const { collection, variable } = source
  const type = { ...collection.type, collection: false }
  return { kind: 'member', variable, path: [], nullable: collection.nullable, type, position }
}

function checkItems(source: ItemSource, segment: FilterSegment, scope: Scope): ItemSource {
  const item = itemOf(source, segment.position)
  const filter = requireBoolean(scope.check(segment.predicate, { ...scope, instance: item }))
  return { ...source, filters: [...source.filters, filter] }
}

function checkLambda(source: ItemSource, segment: LambdaSegment, scope: Scope): LambdaNode {
  const node = { kind: segment.kind, source, type: booleanType, position: source.collection.position }
  if (segment.lambda === undefined) return node
  const { variable, predicate } = segment.lambda
  const variables = new Map([...scope.variables, [variable, itemOf(source, segment.position)] as const])
  return { ...node, predicate: requireBoolean(scope.check(predicate, { ...scope, variables })) }
}

/** The end of a path below a collection. */
function checkCollectionEnd(
  source: ItemSource,
  segment: PathSegment,
  scope: Scope,
): CountNode | LambdaNode | undefined {
  if (segment.kind === 'any' || segment.kind === 'all') return checkLambda(source, segment, scope)
  if (segment.kind !== '$count') return undefined
  if (segment.search !== undefined) throw new QueryError('$search is not supported here', segment.position)
  const predicate = segment.filter
  const narrowed =
    predicate === undefined
      ? source
      : checkItems(source, { kind: '$filter', predicate, position: segment.position }, scope)
  return { kind: 'count', source: narrowed, type: int64, position: source.collection.position }
}

/** A path, resolved against the model step by step. */
export function checkPath(path: PathExpr, scope: Scope): TypedExpr {
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
    source ??= { collection: member, variable: scope.newVariable(), filters: [] }
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
  return new QueryError(`${names[segment.kind]} is not possible here`, segment.position)
}
