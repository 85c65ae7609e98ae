import type { ExpandItem, QueryOptions } from '../ast.ts'
import type { NavigationProperty } from '../csdl.ts'
import { QueryError } from '../query-error.ts'
import type { ModelIndex, StructuredType } from '../typed/model-index.ts'
import type { TypedExpand, TypedQuery } from '../typed/typed-query.ts'

/** Checks the options of an item; a parameter, because they may expand further. */
type CheckNested = (options: QueryOptions, type: StructuredType) => TypedQuery

/** Where an item's path leads: the type that owns the navigation property, and the complex properties on the way. */
interface Place {
  readonly owner: StructuredType
  readonly path: readonly string[]
}

function findPlace(item: ExpandItem, type: StructuredType, index: ModelIndex): Place {
  let owner = type
  const path: string[] = []
  for (const { kind, name, position } of item.path.slice(0, -1)) {
    const cast = index.findType(name)
    if (cast !== undefined && cast.name === owner.name) continue
    const property = kind === 'property' ? owner.properties.get(name) : undefined
    const next = property === undefined ? undefined : index.findType(property.type)
    if (next?.kind !== 'complex')
      throw new QueryError(`${owner.name} has no complex property ${name}`, position)
    path.push(name)
    owner = next
  }
  return { owner, path }
}

function findTargets(item: ExpandItem, { owner }: Place): readonly NavigationProperty[] {
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
export function checkExpand(
  items: readonly ExpandItem[],
  type: StructuredType,
  index: ModelIndex,
  checkNested: CheckNested,
): readonly TypedExpand[] {
  const byPath = new Map<string, { readonly star: boolean; readonly expand: TypedExpand }>()
  for (const item of items) {
    const place = findPlace(item, type, index)
    const star = item.path.at(-1)?.kind === 'star'
    for (const property of findTargets(item, place)) {
      const path = [...place.path, property.name]
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
