import type { ExpandItem, Expr, ItemSegment, OrderByItem, QueryOptions, SelectItem } from '../ast.ts'
import type { NavigationProperty } from '../csdl.ts'
import { inOption, QueryError } from '../query-error.ts'
import type { ModelIndex, StructuredType } from '../typed/model-index.ts'
import type { Selection, TypedExpand, TypedOrderBy, TypedQuery } from '../typed/typed-ast.ts'
import { describeType } from '../typed/scalar.ts'
import { checkExpression, checkFilter, type CheckSettings } from './check-expression.ts'

/** Options that parse but that nothing here can answer. */
const unsupported = [
  'compute',
  'search',
  'index',
  'deltatoken',
] as const satisfies readonly (keyof QueryOptions)[]

function checkOrderBy(
  items: readonly OrderByItem[],
  type: StructuredType,
  index: ModelIndex,
  settings: CheckSettings,
): readonly TypedOrderBy[] {
  return items.map(({ expression, direction }) => {
    const typed = checkExpression(expression, type.name, index, settings)
    if (typed.type.collection || typed.type.family === 'structured') {
      throw new QueryError(`${describeType(typed.type)} has no order`, typed.position)
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
  for (const name of unsupported) {
    if (options[name] !== undefined) throw new QueryError('The option is not supported', 0, `$${name}`)
  }
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
 * Checks the options of a request against the entity type that it is about: names, operand types, what can be
 * selected, ordered and expanded, at every level.
 *
 * @param typeName - qualified name of the entity type
 * @throws QueryError (`ADP_QUERY`, 400) with the option and the character position in it
 */
export function checkQuery(
  options: QueryOptions,
  typeName: string,
  index: ModelIndex,
  settings: CheckSettings = {},
): TypedQuery {
  return checkOptions(options, index.structured(typeName), index, settings)
}

/** Where a segment of a path leads: a complex property, or the type itself by its own name. */
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

/** Where an item's path leads: the type that owns the navigation property, and the complex properties on the way. */
function findPlace(item: ExpandItem, type: StructuredType, index: ModelIndex) {
  let owner = type
  const path: string[] = []
  for (const segment of item.path.slice(0, -1)) {
    const next = step(owner, segment, index)
    if (next !== owner) path.push(segment.name)
    owner = next
  }
  return { owner, path }
}

function findTargets(item: ExpandItem, owner: StructuredType): readonly NavigationProperty[] {
  const last = item.path.at(-1)
  if (last === undefined) throw new QueryError('$value cannot be expanded here', item.position)
  if (last.kind === 'star') return [...owner.navigation.values()]
  const property = last.kind === 'property' ? owner.navigation.get(last.name) : undefined
  if (property === undefined) {
    throw new QueryError(`${owner.name} has no navigation property ${last.name}`, last.position)
  }
  return [property]
}

const modes = { $ref: 'references', $count: 'count', $value: 'entities' } as const

/** The items of `$expand` with their options; an explicit item overrides the star. */
function checkExpand(
  items: readonly ExpandItem[],
  type: StructuredType,
  index: ModelIndex,
  checkNested: (options: QueryOptions, type: StructuredType) => TypedQuery,
): readonly TypedExpand[] {
  const byPath = new Map<string, { readonly star: boolean; readonly expand: TypedExpand }>()
  for (const item of items) {
    const { owner, path: before } = findPlace(item, type, index)
    const star = item.path.at(-1)?.kind === 'star'
    for (const property of findTargets(item, owner)) {
      const path = [...before, property.name]
      const known = byPath.get(path.join('/'))
      if (known !== undefined && star) continue
      if (known?.star === false) throw new QueryError(`${property.name} is expanded twice`, item.position)
      if (item.suffix === '$count' && !property.collection) {
        throw new QueryError(`${property.name} is not a collection`, item.position)
      }
      const target = index.structured(property.type)
      const { levels = 1, ...options } = item.options
      const mode = item.suffix === undefined ? 'entities' : modes[item.suffix]
      const expand = { path, property, target, mode, levels, query: checkNested(options, target) }
      byPath.set(path.join('/'), { star, expand })
    }
  }
  return [...byPath.values()].map(({ expand }) => expand)
}

/** A selection while it is being put together. */
type Draft = Map<string, Draft | 'all'>

/** The paths that an item asks for: those of its own `$select` begin with its path. */
function pathsOf({ path, parameterNames, options, position }: SelectItem): (readonly ItemSegment[])[] {
  const last = path.at(-1)
  if (parameterNames !== undefined || (last?.kind === 'star' && last.name !== '*'))
    throw new QueryError('Operations cannot be selected here', position)
  const { select, ...others } = options
  if (Object.keys(others).length > 0) throw new QueryError('Only $select is supported here', position)
  return select === undefined ? [path] : select.flatMap(pathsOf).map((inner) => [...path, ...inner])
}

/** Adds what a path leads to. */
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
  // Where all of it is asked for already, the path is only checked.
  const inner: Draft = known === undefined || known === 'all' ? new Map<string, Draft | 'all'>() : known
  if (known === undefined) draft.set(name, inner)
  addPath(inner, next, rest, index)
}

/** The selection of `$select`; `undefined` if it selects everything. Throws `QueryError` for members that the type lacks. */
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
