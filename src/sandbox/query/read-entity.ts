import {
  isGuid,
  type KeyPart,
  parseJsonQuery,
  type PathSegment,
  type Property,
  refuseCollectionOptions,
  type StructuredType,
  type TypeInfo,
} from '../../odata/index.ts'
import { notFound, type Reply } from '../http/reply.ts'
import type { RoutedRequest } from '../http/request.ts'
import { type Entity, isEntity, type Json } from '../json.ts'
import { compileQuery, type QueryContext } from './compile-query.ts'
import { collectionReply, entityReply, keyPredicate, plainText, presentationOf } from './presentation.ts'
import { countCollection, listedRows, readCollection } from './read-collection.ts'

interface EntityTarget {
  readonly typeName: string
  /** The text after `$metadata#` in the context URL of the collection. */
  readonly context: string
  readonly entity: Entity
  readonly rest: readonly PathSegment[]
  /** True if the path ends with `/$value`. */
  readonly isRaw: boolean
}

/**
 * Answers a GET of an entity or of a resource below the entity: a property (OData protocol 11.2.4.1), the raw value of a property, a
 * navigation property, or an item of a navigation property by its key. The status is 204 for null, and 404 if there is no such resource.
 * Throws `QueryError` for invalid query options.
 */
export function readEntity(target: EntityTarget, queryContext: QueryContext, request: RoutedRequest): Reply {
  const { typeName, context, entity, isRaw } = target
  const { index } = queryContext
  const type = index.structured(typeName)
  const [next, ...rest] = target.rest
  const here = `${context}${keyPredicate(type, entity, index)}`
  if (next === undefined) return isRaw ? notFound : readWhole(target, queryContext, request)
  if (next.kind !== 'property') return notFound
  const link = type.navigation.get(next.name)
  if (link === undefined) return readValue(target, type, here, queryContext, request)
  const value = entity[link.name] ?? null
  const about = { ...target, typeName: link.type, context: `${here}/${link.name}`, rest }
  if (!Array.isArray(value)) {
    if (value === null && rest.length === 0) return noContent
    return isEntity(value) ? readEntity({ ...about, entity: value }, queryContext, request) : notFound
  }
  const entities = value.filter(isEntity)
  const [inside, ...beyond] = rest
  if (inside?.kind === 'key') {
    const found = findByKey(entities, inside.parts, index.structured(link.type).key)
    if (found === undefined) return notFound
    return readEntity({ ...about, entity: found, rest: beyond }, queryContext, request)
  }
  const collection = { ...about, rows: listedRows(entities) }
  if (isRaw || beyond.length > 0) return notFound
  if (inside === undefined) return readCollection(collection, queryContext, request)
  return inside.kind === '$count' ? countCollection(collection, queryContext, request) : notFound
}

function readWhole(
  { typeName, context, entity }: EntityTarget,
  queryContext: QueryContext,
  request: RoutedRequest,
): Reply {
  const options = parseJsonQuery(request.query)
  refuseCollectionOptions(options)
  const presentation = presentationOf(options, request)
  const { project, selection } = compileQuery(options, typeName, queryContext, presentation.level)
  return entityReply(200, presentation, `${context}${selection}/$entity`, project(entity))
}

function readValue(
  { entity, rest, isRaw }: EntityTarget,
  owner: StructuredType,
  here: string,
  { index }: QueryContext,
  request: RoutedRequest,
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
  const options = parseJsonQuery(request.query)
  refuseCollectionOptions(options, 'select', 'expand')
  if (value === null) return noContent
  if (isRaw) return typeof value === 'object' ? notFound : plainText(String(value))
  const presentation = presentationOf(options, request)
  const context = `${here}/${names.join('/')}`
  if (Array.isArray(value)) return collectionReply(presentation, context, value)
  return entityReply(200, presentation, context, isEntity(value) ? value : { value })
}

const noContent: Reply = { status: 204, headers: { 'OData-Version': '4.0' }, body: '' }

export function findByKey(
  entities: readonly Entity[],
  parts: readonly KeyPart[],
  names: readonly string[],
): Entity | undefined {
  const wanted = keyValues(parts, names)
  return wanted && entities.find((one) => names.every((name, at) => one[name] === wanted[at]))
}

/**
 * Returns the values of a key predicate as text, in the order of the key names. Guids are accepted with or without apostrophes and are
 * converted to lower case. Enumeration members are given by name. Returns `undefined` if the predicate does not fit the key, so that no
 * entity is found.
 */
export function keyValues(parts: readonly KeyPart[], names: readonly string[]): string[] | undefined {
  if (parts.length !== names.length) return undefined
  const values = names.map((name) => {
    const part = parts.find((one) => one.name === name) ?? (names.length === 1 ? parts[0] : undefined)
    return part === undefined || (part.name ?? name) !== name ? undefined : keyText(part)
  })
  const known = values.filter((value) => value !== undefined)
  return known.length === names.length ? known : undefined
}

function keyText({ value }: KeyPart): string | undefined {
  if (value.kind === 'enum') return value.members.length === 1 ? value.members[0] : undefined
  if (value.kind === 'alias') return undefined
  return isGuid(value.value) ? value.value.toLowerCase() : value.value
}
