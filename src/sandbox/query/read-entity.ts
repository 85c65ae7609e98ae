import { QueryError } from '../../odata/index.ts'
import type { PathSegment, Property, QueryOptions, StructuredType, TypeInfo } from '../../odata/index.ts'
import { notFound } from '../edge/refusals.ts'
import type { Reply } from '../edge/reply.ts'
import type { Route, ServiceRequest } from '../edge/request.ts'
import type { Json } from '../seed/documents/field-rules.ts'
import { collectionReply, entityReply } from './collection.ts'
import { compileQuery } from './compile-query.ts'
import type { QueryContext } from './compile-query.ts'
import { isEntity } from './compiled-query.ts'
import type { Entity } from './compiled-query.ts'
import { keyPredicate } from './describe-entity.ts'
import type { Describe } from './describe-entity.ts'
import { presentationOf } from './presentation.ts'
import { plainText } from './raw-value.ts'
import { countEntities, readEntities } from './read-entities.ts'
import { readQuery } from './read-query.ts'
import { keyValues } from './resource.ts'

/** An entity, and the rest of the path below it. */
export interface EntityTarget {
  /** Qualified name of the entity type. */
  readonly typeName: string
  /** The text after `$metadata#` for its collection. */
  readonly context: string
  readonly entity: Entity
  /** The path after its key. */
  readonly rest: readonly PathSegment[]
  /** Whether `/$value` ends the path. */
  readonly isRaw: boolean
  /** Another way to write the full level of annotations. */
  readonly describe?: Describe
}

/** Options of a collection, which one entity or value has no use for (OData protocol 11.2.5). */
const ofCollections = ['filter', 'orderby', 'top', 'skip', 'count', 'search', 'skiptoken', 'index'] as const

/**
 * Answers a GET of one entity, or of a resource below it: a property (OData protocol 11.2.4.1), its raw value, a navigation
 * property, an item of one by its key. 204 for a null, 404 for a path that leads nowhere. Errors: `QueryError`.
 */
export function readEntity(
  target: EntityTarget,
  queryContext: QueryContext,
  serverPageSize: number,
  route: Route,
  request: ServiceRequest,
): Reply {
  const { typeName, context, entity, isRaw } = target
  const { index } = queryContext
  const type = index.structured(typeName)
  const [next, ...rest] = target.rest
  const here = `${context}${keyPredicate(type, entity, index)}`
  if (next === undefined) return isRaw ? notFound : readWhole(target, queryContext, route, request)
  if (next.kind !== 'property') return notFound
  const link = type.navigation.get(next.name)
  if (link === undefined) return readValue(target, type, here, queryContext, route, request)
  const value = entity[link.name] ?? null
  const about = { ...target, typeName: link.type, context: `${here}/${link.name}`, rest }
  if (!Array.isArray(value)) {
    if (value === null && rest.length === 0) return noContent
    return isEntity(value)
      ? readEntity({ ...about, entity: value }, queryContext, serverPageSize, route, request)
      : notFound
  }
  const entities = value.filter(isEntity)
  const [inside, ...beyond] = rest
  if (inside?.kind === 'key') {
    const names = index.structured(link.type).key
    const wanted = keyValues(inside.parts, names)
    const found = entities.find((one) => names.every((name, at) => one[name] === wanted?.[at]))
    if (found === undefined) return notFound
    return readEntity({ ...about, entity: found, rest: beyond }, queryContext, serverPageSize, route, request)
  }
  const collection = { ...about, entities }
  if (isRaw || beyond.length > 0) return notFound
  if (inside === undefined) return readEntities(collection, queryContext, serverPageSize, route, request)
  return inside.kind === '$count' ? countEntities(collection, queryContext, request) : notFound
}

function readWhole(
  { typeName, context, entity, describe }: EntityTarget,
  queryContext: QueryContext,
  route: Route,
  request: ServiceRequest,
): Reply {
  const options = readQuery(request.query)
  refuseOptions(options)
  const presentation = presentationOf(options, route, request, queryContext.index, describe)
  const query = compileQuery(options, typeName, queryContext, presentation.describe)
  const shown = query.project(entity, `${presentation.root}/${context}`)
  return entityReply(200, presentation, `${context}/$entity`, shown)
}

/** A structural property, or a member of a complex one. */
function readValue(
  { entity, rest, isRaw }: EntityTarget,
  owner: StructuredType,
  here: string,
  { index }: QueryContext,
  route: Route,
  request: ServiceRequest,
): Reply {
  let type: StructuredType | undefined = owner
  let value: Json = { ...entity }
  const names: string[] = []
  for (const segment of rest) {
    if (segment.kind === '$count' && Array.isArray(value)) return plainText(String(value.length))
    const property: Property | undefined =
      segment.kind === 'property' ? type?.properties.get(segment.name) : undefined
    if (property === undefined || !isEntity(value)) return notFound
    value = value[property.name] ?? null
    names.push(property.name)
    const inner: TypeInfo | undefined = property.collection ? undefined : index.findType(property.type)
    type = inner?.kind === 'complex' ? inner : undefined
  }
  const options = readQuery(request.query)
  refuseOptions(options, 'select', 'expand')
  if (value === null) return noContent
  if (isRaw) return typeof value === 'object' ? notFound : plainText(String(value))
  const presentation = presentationOf(options, route, request, index)
  const context = `${here}/${names.join('/')}`
  if (Array.isArray(value)) return collectionReply({ presentation, context, rows: value })
  return entityReply(200, presentation, context, isEntity(value) ? value : { value })
}

/** Refuses options that one entity or value cannot have. Errors: `QueryError`. */
function refuseOptions(options: QueryOptions, ...more: ('select' | 'expand')[]): void {
  for (const name of [...ofCollections, ...more])
    if (options[name] !== undefined)
      throw new QueryError(
        'The option applies to collections only, and the path names one entity or value: leave it out, or read the collection',
        0,
        `$${name}`,
      )
}

const noContent: Reply = { status: 204, headers: { 'OData-Version': '4.0' }, body: '' }
