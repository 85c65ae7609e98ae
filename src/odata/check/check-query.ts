import type { ExpandItem, Expr, ItemSegment, OrderByItem, QueryOptions, SelectItem } from '../ast.ts'
import type { NavigationProperty } from '../csdl.ts'
import { inOption, QueryError } from '../query-error.ts'
import type { ModelIndex, StructuredType } from '../typed/model-index.ts'
import type { Selection, TypedExpand, TypedOrderBy, TypedQuery } from '../typed/typed-ast.ts'
import { describeType } from '../typed/scalar.ts'
import { checkExpression, checkFilter, type CheckSettings } from './check-expression.ts'

function checkOrderBy(
  items: readonly OrderByItem[],
  type: StructuredType,
  index: ModelIndex,
  settings: CheckSettings,
): readonly TypedOrderBy[] {
  return items.map(({ expression, direction }) => {
    const typed = checkExpression(expression, type.name, index, settings)
    if (typed.type.collection || typed.type.family === 'structured') {
      throw new QueryError(`Values of type ${describeType(typed.type)} cannot be ordered`, typed.position)
    }
    return { expression: typed, direction }
  })
}

function checkOptions(
  options: QueryOptions,
  type: StructuredType,
  index: ModelIndex,
  outer: CheckSettings,
): TypedQuery {
  const aliases = new Map<string, Expr>([...(outer.aliases ?? []), ...(options.aliases ?? [])])
  const settings: CheckSettings = { ...outer, aliases }
  const { filter, orderby, select, expand, top, skip } = options
  const selection = select && inOption('$select', () => checkSelect(select, type, index))
  const nested = (inner: QueryOptions, target: StructuredType): TypedQuery =>
    checkOptions(inner, target, index, settings)
  return {
    ...(filter && { filter: inOption('$filter', () => checkFilter(filter, type.name, index, settings)) }),
    orderby: orderby ? inOption('$orderby', () => checkOrderBy(orderby, type, index, settings)) : [],
    ...(selection && { select: selection }),
    expand: expand ? inOption('$expand', () => checkExpand(expand, type, index, nested)) : [],
    ...(top !== undefined && { top }),
    ...(skip !== undefined && { skip }),
    count: options.count ?? false,
  }
}

/**
 * Checks the options of a request and of its `$expand` items against the entity type with the qualified name `typeName`. The checks cover
 * names, the types of operands, and the members that can be selected, ordered and expanded. Throws `QueryError` (`ADP_QUERY`, 400) with the
 * option and the character position in its value.
 */
export function checkQuery(
  options: QueryOptions,
  typeName: string,
  index: ModelIndex,
  settings: CheckSettings,
): TypedQuery {
  return checkOptions(options, index.structured(typeName), index, settings)
}

/** The options that apply only to collections (OData protocol 11.2.5). */
const ofCollections = ['filter', 'orderby', 'top', 'skip', 'count', 'skiptoken'] as const

/** Throws `QueryError` if the query of a single entity or value has an option that applies only to collections, or an option in `more`. */
export function refuseCollectionOptions(options: QueryOptions, ...more: ('select' | 'expand')[]): void {
  for (const name of [...ofCollections, ...more])
    if (options[name] !== undefined)
      throw new QueryError(
        'The option applies to collections only, and the path names one entity or value',
        0,
        `$${name}`,
        'Omit the option, or read the collection',
      )
}

/** Returns the type of the complex property that a segment names, or `type` itself if the segment is a cast to this type. */
function step(
  type: StructuredType,
  { kind, name, position }: ItemSegment,
  index: ModelIndex,
): StructuredType {
  if (index.findType(name)?.name === type.name) return type
  const property = kind === 'property' ? type.properties.get(name) : undefined
  const next = property === undefined ? undefined : index.findType(property.type)
  if (next?.kind === 'complex') return next
  throw new QueryError(`${type.name} has no complex property ${name}`, position)
}

/** Finds the navigation properties of an `$expand` item. Only casts to the type itself may come before a navigation property. */
function findTargets(
  { path }: ExpandItem,
  type: StructuredType,
  index: ModelIndex,
): readonly NavigationProperty[] {
  for (const { name, position } of path.slice(0, -1))
    if (index.findType(name)?.name !== type.name)
      throw new QueryError(`${name} has no navigation properties to expand`, position)
  const [last] = path.slice(-1)
  if (last?.kind === 'star') return [...type.navigation.values()]
  const property = last?.kind === 'property' ? type.navigation.get(last.name) : undefined
  if (property !== undefined) return [property]
  throw new QueryError(`${type.name} has no navigation property ${last?.name}`, last?.position ?? 0)
}

/** Checks `$expand`. An item that names a property takes precedence over an item `*`. */
function checkExpand(
  items: readonly ExpandItem[],
  type: StructuredType,
  index: ModelIndex,
  checkNested: (options: QueryOptions, type: StructuredType) => TypedQuery,
): readonly TypedExpand[] {
  const byName = new Map<string, { readonly star: boolean; readonly expand: TypedExpand }>()
  for (const item of items) {
    const star = item.path.at(-1)?.kind === 'star'
    for (const property of findTargets(item, type, index)) {
      const { name } = property
      const known = byName.get(name)
      if (known !== undefined && star) continue
      if (known?.star === false) throw new QueryError(`${name} is expanded twice`, item.position)
      const { levels = 1, ...options } = item.options
      if (item.suffix === '$ref' || levels !== 1)
        throw new QueryError(`$ref and $levels are not supported for ${name}`, item.position)
      const isCount = item.suffix === '$count'
      if (isCount && !property.collection) throw new QueryError(`${name} is not a collection`, item.position)
      const target = index.structured(property.type)
      const expand = { property, target, isCount, query: checkNested(options, target) }
      byName.set(name, { star, expand })
    }
  }
  return [...byName.values()].map(({ expand }) => expand)
}

type Draft = Map<string, Draft | 'all'>

/** Returns the paths of a `$select` item. The paths of a nested `$select` begin with the path of the item. */
function pathsOf({ path, select }: SelectItem): (readonly ItemSegment[])[] {
  return select === undefined ? [path] : select.flatMap(pathsOf).map((inner) => [...path, ...inner])
}

function addPath(
  draft: Draft,
  type: StructuredType,
  [first, ...rest]: readonly ItemSegment[],
  index: ModelIndex,
): void {
  if (first === undefined) return
  const { kind, name, position } = first
  if (rest.length === 0 || rest[0]?.kind === 'star') {
    if (kind !== 'property' || !(type.properties.has(name) || type.navigation.has(name)))
      throw new QueryError(`${type.name} has no property ${name}`, position)
    draft.set(name, 'all')
    return
  }
  const next = step(type, first, index)
  const known = next === type ? draft : draft.get(name)
  // If the whole property is already selected, the rest of the path is only checked and not added.
  const inner: Draft = known === undefined || known === 'all' ? new Map<string, Draft | 'all'>() : known
  if (known === undefined) draft.set(name, inner)
  addPath(inner, next, rest, index)
}

/** Checks `$select`. Returns `undefined` if all properties are selected. Throws `QueryError` for a member that the type does not have. */
function checkSelect(
  items: readonly SelectItem[],
  type: StructuredType,
  index: ModelIndex,
): Selection | undefined {
  const draft: Draft = new Map()
  const isAll = ([first]: readonly ItemSegment[]): boolean => first?.kind === 'star'
  const paths = items.flatMap(pathsOf)
  for (const path of paths) if (!isAll(path)) addPath(draft, type, path, index)
  return paths.some(isAll) ? undefined : draft
}
