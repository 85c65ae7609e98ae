import type { ModelIndex, Property, QueryOptions, StructuredType } from '../../odata/index.ts'
import { type MetadataLevel, readPreferences } from '../../v2/index.ts'
import { jsonMediaType, jsonReply, type Reply } from '../http/reply.ts'
import { contextRoot, type RoutedRequest, type ServiceRequest } from '../http/request.ts'
import { type Entity, isEntity, type Json } from '../json.ts'

/** How an answer is annotated (OData JSON format 3.1). */
interface Presentation {
  /** URL of the service root. */
  readonly root: string
  readonly level: MetadataLevel
  /** Adds what `odata.metadata=full` asks for; undefined at the other levels. */
  readonly describe: Describe | undefined
}

/** The level that a client asks for: `$format` wins over `Accept` (OData protocol 8.2.1), also where it names no level. */
export function levelOf(format: string | undefined, request: ServiceRequest): MetadataLevel {
  return readPreferences('', format ?? request.header('accept') ?? '').metadata
}

/** How the answer to a request is annotated; `describe` is another way to write the full level (the legacy face). */
export function presentationOf(
  options: QueryOptions,
  request: RoutedRequest,
  index: ModelIndex,
  describe?: Describe,
): Presentation {
  const level = levelOf(options.format, request)
  const root = contextRoot(request)
  return {
    root,
    level,
    describe: level === 'full' ? (describe ?? describeFully(root, index)) : undefined,
  }
}

/**
 * Writes a collection: context (all that follows `$metadata#`), count where asked for, rows, link to the next page (OData JSON format
 * 12).
 */
export function collectionReply(
  { root, level }: Presentation,
  context: string,
  rows: readonly Json[],
  count?: number,
  next?: string,
): Reply {
  const body = {
    ...(level === 'none' ? {} : { '@odata.context': `${root}/$metadata#${context}` }),
    ...(count === undefined ? {} : { '@odata.count': count }),
    value: rows,
    ...(next === undefined ? {} : { '@odata.nextLink': next }),
  }
  return jsonReply(200, JSON.stringify(body), { 'Content-Type': jsonMediaType(level) })
}

/** Writes one entity of a set, or one value: `context` is all that follows `$metadata#`. */
export function entityReply(
  status: number,
  { root, level }: Presentation,
  context: string,
  entity: Record<string, Json>,
): Reply {
  const body = level === 'none' ? entity : { '@odata.context': `${root}/$metadata#${context}`, ...entity }
  return jsonReply(status, JSON.stringify(body), { 'Content-Type': jsonMediaType(level) })
}

/** A raw value or a count as text (OData protocol 11.2.4.1, 11.2.10). */
export function plainText(text: string): Reply {
  return jsonReply(200, text, { 'Content-Type': 'text/plain' })
}

/** An entity with its annotations, and the URL at which it can be read. */
interface Described {
  readonly members: Record<string, Json>
  readonly url: string
}

/** Annotates the `shown` members of an entity; `collectionUrl` is the URL of the collection that it was found in. */
export type Describe = (
  type: StructuredType,
  entity: Entity,
  shown: Record<string, Json>,
  collectionUrl: string,
) => Described

/** The key of an entity as a path has it: `(<guid>)`, or all names where the key has several. */
export function keyPredicate(type: StructuredType, entity: Entity, index: ModelIndex): string {
  const parts = type.key.map((name) => {
    const given = entity[name]
    const value = typeof given === 'object' || given === undefined ? '' : String(given)
    const declared = type.properties.get(name)?.type ?? ''
    const text = index.findType(declared)?.kind === 'enum' ? `${declared}'${value}'` : value
    return type.key.length === 1 ? text : `${name}=${text}`
  })
  return `(${parts.join(',')})`
}

/**
 * What `odata.metadata=full` shows (OData JSON format 3.1.2): type, id and edit link of each entity, the types that JSON does
 * not tell, and a link for each navigation property. Entities of a set of their own are at that set, others inside their owner.
 */
function describeFully(root: string, index: ModelIndex): Describe {
  const homes = new Map([...index.entitySets.values()].map(({ name, entityType }) => [entityType, name]))
  return (type, entity, shown, collectionUrl) => {
    const home = homes.get(type.name)
    const path = `${home === undefined ? collectionUrl.slice(root.length + 1) : home}${keyPredicate(type, entity, index)}`
    const url = `${root}/${path}`
    const links = [...type.navigation.keys()].flatMap((name): [string, Json][] => [
      [`${name}@odata.associationLink`, `${url}/${name}/$ref`],
      [`${name}@odata.navigationLink`, `${url}/${name}`],
    ])
    const members: Record<string, Json> = {
      '@odata.type': `#${type.name}`,
      '@odata.id': url,
      '@odata.editLink': path,
      ...describeMembers(type, shown, index),
      ...Object.fromEntries(links),
    }
    return { members, url }
  }
}

/** The members of an entity or complex value, each after the annotation of its type. */
function describeMembers(type: StructuredType, shown: Entity, index: ModelIndex): Record<string, Json> {
  const members: Record<string, Json> = {}
  for (const [name, value] of Object.entries(shown)) {
    const property = type.properties.get(name)
    const note = property === undefined || value === null ? undefined : typeNote(property)
    if (note !== undefined) members[`${name}@odata.type`] = note
    members[name] = property === undefined ? value : describeValue(property, value, index)
  }
  return members
}

/** The type of a property as an annotation; undefined for a complex value, which has its own, and for types that JSON shows. */
function typeNote({ type, collection }: Property): string | undefined {
  const short = type.replace(/^Edm\./, '')
  if (collection) return `#Collection(${short})`
  if (short === type) return undefined
  return short === 'String' || short === 'Boolean' ? undefined : `#${short}`
}

function describeValue({ type, collection }: Property, value: Json, index: ModelIndex): Json {
  const declared = index.findType(type)
  if (declared?.kind !== 'complex') return value
  const describe = (one: Json): Json =>
    isEntity(one) ? { '@odata.type': `#${type}`, ...describeMembers(declared, one, index) } : one
  return collection && Array.isArray(value) ? value.map(describe) : describe(value)
}
