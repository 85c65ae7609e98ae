import { QueryError } from '../../odata/index.ts'
import type { Selection, StructuredType, TypedExpand, TypedQuery } from '../../odata/index.ts'
import type { Json } from '../seed/documents/field-rules.ts'
import { findEntities, isEntity } from './compiled-query.ts'
import type { CompiledQuery, Entity, Projection } from './compiled-query.ts'
import type { Describe } from './describe-entity.ts'

type Compile = (query: TypedQuery, type: StructuredType) => CompiledQuery

/**
 * Compiles `$select` and `$expand` of a type. Without `$select` all structural properties are shown; navigation
 * properties only where they are expanded (OData URL conventions 5.1.2, 5.1.3). Errors: `QueryError` for forms of
 * `$expand` that the service does not offer.
 */
export function compileProjection(
  { select, expand }: TypedQuery,
  type: StructuredType,
  compile: Compile,
  describe?: Describe,
): Projection {
  const properties = [...type.properties.keys()]
  const shown = select === undefined ? properties : properties.filter((name) => select.has(name))
  const links = expand.map((item) => compileLink(item, compile))
  return (entity, collectionUrl = '') => {
    const result: Record<string, Json> = {}
    for (const name of shown) {
      const value = entity[name]
      if (value !== undefined) result[name] = selectPart(value, select?.get(name) ?? 'all')
    }
    const { members, url } = describe?.(type, entity, result, collectionUrl) ?? { members: result, url: '' }
    for (const link of links) link(entity, members, url)
    return members
  }
}

/** The selected members of a complex value. */
function selectPart(value: Json, selection: Selection | 'all'): Json {
  if (selection === 'all' || !isEntity(value)) return value
  const part: Record<string, Json> = {}
  for (const [name, inner] of selection) {
    const member = value[name]
    if (member !== undefined) part[name] = selectPart(member, inner)
  }
  return part
}

type Link = (entity: Entity, result: Record<string, Json>, url: string) => void

function compileLink({ path, property, target, mode, levels, query }: TypedExpand, compile: Compile): Link {
  const { name } = property
  if (path.length > 1 || mode === 'references' || levels !== 1)
    throw new QueryError(`This form of $expand is not supported for ${name}`, 0, '$expand')
  const nested = compile(query, target)
  return (entity, result, url) => {
    const value = entity[name] ?? null
    const inside = `${url}/${name}`
    if (!Array.isArray(value)) {
      result[name] = isEntity(value) ? nested.project(value, inside) : null
      return
    }
    const found = findEntities(nested, value.filter(isEntity))
    if (nested.count || mode === 'count') result[`${name}@odata.count`] = found.length
    if (mode === 'count') return
    const end = nested.top === undefined ? undefined : nested.skip + nested.top
    result[name] = found.slice(nested.skip, end).map((item) => nested.project(item, inside))
  }
}
