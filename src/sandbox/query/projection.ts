import type { ExpandItem, QueryOptions, SelectItem } from '../../odata/index.ts'
import { QueryError } from '../../odata/index.ts'
import type { StructuredType } from '../../odata/typed/model-index.ts'
import type { Json } from '../seed/documents/field-rules.ts'
import type { CompiledQuery, QueryContext } from './compile-query.ts'
import { findEntities, compileQuery } from './compile-query.ts'

/** An entity as JSON, with its contained collections inside. */
export type Entity = Readonly<Record<string, Json>>

/** Cuts an entity down to what the client asked for. */
export type Projection = (entity: Entity) => Record<string, Json>

/**
 * Compiles `$select` and `$expand` of a type. Without `$select` all structural properties are shown; navigation
 * properties only where they are expanded (OData URL conventions 5.1.2, 5.1.3). Errors: `QueryError` for names that the
 * type does not have and for forms that the service does not offer.
 */
export function compileProjection(
  options: QueryOptions,
  type: StructuredType,
  context: QueryContext,
): Projection {
  const shown = compileSelect(options.select, type)
  const links = compileExpand(options.expand ?? [], type, context)
  return (entity) => {
    const result: Record<string, Json> = {}
    for (const [name, part] of shown) if (entity[name] !== undefined) result[name] = part(entity[name])
    for (const link of links) link(entity, result)
    return result
  }
}

type Part = (value: Json) => Json
const whole: Part = (value) => value

function compileSelect(items: readonly SelectItem[] | undefined, type: StructuredType): Map<string, Part> {
  const all = new Map([...type.properties.keys()].map((name) => [name, whole]))
  if (items === undefined) return all
  const chosen = new Map<string, Set<string> | undefined>()
  for (const { path, position, options } of items) {
    const [first, second, ...rest] = path
    if (first === undefined || rest.length > 0 || Object.keys(options).length > 0)
      throw new QueryError('This form of $select is not supported', position, '$select')
    if (first.kind === 'star') return all
    const property = type.properties.get(first.name)
    if (property === undefined && !type.navigation.has(first.name))
      throw new QueryError(`${type.name} has no property ${first.name}`, position, '$select')
    if (property === undefined) continue
    if (second === undefined) chosen.set(first.name, undefined)
    else if (!chosen.has(first.name)) chosen.set(first.name, new Set([second.name]))
    else chosen.get(first.name)?.add(second.name)
  }
  const order = [...type.properties.keys()].filter((name) => chosen.has(name))
  return new Map(order.map((name) => [name, partOf(chosen.get(name))]))
}

const partOf =
  (names: ReadonlySet<string> | undefined): Part =>
  (value) => {
    if (names === undefined || typeof value !== 'object' || value === null || Array.isArray(value))
      return value
    return Object.fromEntries(Object.entries(value).filter(([name]) => names.has(name)))
  }

type Link = (entity: Entity, result: Record<string, Json>) => void

function compileExpand(items: readonly ExpandItem[], type: StructuredType, context: QueryContext): Link[] {
  const names = new Set<string>()
  return items.flatMap(({ path, suffix, options, position }) => {
    const [first, ...rest] = path
    if (first === undefined || rest.length > 0 || suffix !== undefined || options.levels !== undefined)
      throw new QueryError('This form of $expand is not supported', position, '$expand')
    const targets = first.kind === 'star' ? [...type.navigation.keys()] : [first.name]
    return targets.map((name) => {
      if (names.has(name)) throw new QueryError('The property is expanded twice', position, '$expand')
      names.add(name)
      return compileLink(name, type, options, position, context)
    })
  })
}

function compileLink(
  name: string,
  type: StructuredType,
  options: QueryOptions,
  position: number,
  context: QueryContext,
): Link {
  const link = type.navigation.get(name)
  if (link === undefined) {
    // service.md 1.1 gives the Welfare list for Grants too, whose type has none of its links.
    if (context.extraLinks?.has(name) === true) return (_entity, result) => void (result[name] = [])
    throw new QueryError(`${type.name} has no navigation property ${name}`, position, '$expand')
  }
  const nested: CompiledQuery = compileQuery(options, link.type, context)
  return (entity, result) => {
    const value = entity[name] ?? null
    if (!Array.isArray(value)) {
      result[name] = isEntity(value) ? nested.project(value) : null
      return
    }
    const found = findEntities(nested, value.filter(isEntity))
    if (nested.count) result[`${name}@odata.count`] = found.length
    const items = found.slice(nested.skip, nested.top === undefined ? undefined : nested.skip + nested.top)
    result[name] = items.map((item) => nested.project(item))
  }
}

/** True for a JSON object. */
export const isEntity = (value: Json): value is Record<string, Json> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
